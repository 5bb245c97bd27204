// Prints the message of each call that is refused; the argument is the .gp file of codelets.cpp.
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

#include "devices.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

std::string codelets;

struct Case {
  Graph graph{Target::createIPUTarget(1, 8, "ipu2")};
  ComputeSet set;
  VertexRef scale;
  Tensor x;
  Case() {
    graph.addCodelets(codelets);
    x = graph.addVariable(FLOAT, {2, 3}, "x");
    graph.setTileMapping(x, 0);
    graph.createHostWrite("x", x);
    graph.createHostRead("x", x);
    set = graph.addComputeSet("set");
    scale = graph.addVertex(set, "Scale<float>");
  }
};

// An engine of a stream's copy.
struct Running : Case {
  Engine engine;
  float values[6] = {};
  Running() : engine(graph, Copy(graph.addHostToDeviceFIFO("in", FLOAT, 6), x)) {}
  void load() { engine.load(deviceOf(graph)); }
};

const std::map<std::string, std::function<void()>> cases = {
    {"run before load", [] { Running().engine.run(); }},
    {"write before load", [] { Running r; r.engine.writeTensor("x", r.values, r.values + 6); }},
    {"read before load", [] { Running r; r.engine.readTensor("x", r.values, r.values + 6); }},
    {"load on another device", [] { Running().engine.load(Device(0, Target::createIPUTarget(1, 4, "ipu2"))); }},
    {"other program", [] { Running r; r.load(); r.engine.run(1); }},
    {"null buffer", [] { Running r; r.engine.connectStream("in", nullptr); }},
    {"null tensor", [] { Running r; r.load(); r.engine.writeTensor("x", nullptr); }},
    {"other replica", [] { Running().engine.connectStreamToCallback("in", 1, [](void*) {}); }},
    {"no compute set", [] { Execute execute{ComputeSet()}; }},
    {"no function", [] { Call call{Function()}; }},
    {"matrix for a vector", [] { Case c; c.graph.connect(c.scale["in"], c.x); }},
    {"matrix for an element", [] { Case c; c.graph.connect(c.graph.addVertex(c.set, "Thrower")["in"], c.x); }},
    {"index beyond a tile", [] { Case c; c.graph.connect(c.scale["in"][1u << 30], c.x[0][0]); }},
    {"size beyond a tile", [] { Case c; c.graph.setFieldSize(c.scale["in"], ~std::size_t{0}); }},
    {"size of one value", [] { Case c; c.graph.setFieldSize(c.scale["factor"], 3); }},
    {"index of one value", [] { Case c; c.graph.setInitialValue(c.scale["factor"][1], 3.0f); }},
    {"no vertex", [] { Case c; c.graph.setTileMapping(VertexRef(), 0); }},
    {"other vertex", [] { Case c; c.graph.setPerfEstimate(VertexRef(7), 0); }},
    {"tensor of another graph", [] { Case c, d; c.graph.connect(c.scale["in"], d.x[0]); }},
    {"tensors of two graphs", [] { Case c, d; concat(c.x, d.x); }},
    {"similar vertex", [] { Case c; c.graph.addVertex(c.set, "ns::Scale<int>"); }},
    {"dimension of a field", [] { Case c; c.graph.getMaxFieldDim("Scale<float>", "in", 1); }},
    {"field of a type", [] { Case c; c.graph.getMaxFieldDim("Scale<float>", "input", 0); }},
    {"codelets cut short",
     [] {
       std::ifstream file(codelets, std::ios::binary);
       const std::string image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
       const std::string half = codelets + ".half.gp";
       std::ofstream(half, std::ios::binary) << image.substr(0, image.size() / 2);
       Graph().addCodelets(half);
     }},
};

}  // namespace

int main(int, char** arguments) {
  codelets = arguments[1];
  for (const auto& [name, make] : cases) {
    std::cout << name << ": ";
    try {
      make();
      std::cout << "accepted\n";
    } catch (const poplar_error& error) {
      std::cout << error.type << ": " << error.what() << '\n';
    }
  }
}
