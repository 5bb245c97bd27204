// Passes the option of the second and third argument to what the first names; prints results, or the error.
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <popops/ElementWise.hpp>
#include <popops/codelets.hpp>
#include <poprand/RandomGen.hpp>

#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "devices.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

const char* const codelet = R"(
#include <poplar/Vertex.hpp>
class Divide : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> x, y;
  poplar::Output<poplar::Vector<float>> out;
  void compute() { for (unsigned i = 0; i < x.size(); ++i) out[i] = x[i] / y[i]; }
};
)";

const char* const squares = R"(
#include <poplar/Vertex.hpp>
template <class T>
class Square : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<T>> x;
  poplar::Output<poplar::Vector<T>> out;
  void compute() { for (unsigned i = 0; i < x.size(); ++i) out[i] = x[i] * x[i]; }
};
template class Square<float>;
template class Square<half>;
)";

struct Quotient {
  Graph graph{Target::createIPUTarget(1, 4, "ipu2")};
  Sequence program;
  Tensor x, y;
  explicit Quotient(float divisor) {
    popops::addCodelets(graph);
    x = graph.addConstant(FLOAT, {2}, 1.0f);
    y = graph.addConstant(FLOAT, {2}, divisor);
    graph.setTileMapping(x, 0);
    graph.setTileMapping(y, 0);
  }
  void run(const Tensor& out, const OptionFlags& options) {
    graph.createHostRead("out", out);
    Engine engine(graph, program, options);
    engine.load(deviceOf(graph));
    engine.run();
    float values[2];
    engine.readTensor("out", values, values + 2);
    std::cout << values[0] << ' ' << values[1] << '\n';
  }
};

void byVertex(const OptionFlags& options, float divisor) {
  Quotient q(divisor);
  std::istringstream source(codelet);
  q.graph.addCodelets(source);
  const Tensor out = q.graph.addVariable(FLOAT, {2}, "out");
  q.graph.setTileMapping(out, 1);
  const ComputeSet set = q.graph.addComputeSet("quotients");
  q.graph.setTileMapping(q.graph.addVertex(set, "Divide", {{"x", q.x}, {"y", q.y}, {"out", out}}), 1);
  q.program.add(Execute(set));
  q.run(out, options);
}

void byLibrary(const OptionFlags& options, float divisor) {
  Quotient q(divisor);
  const Tensor out = popops::div(q.graph, q.x, q.y, q.program, "quotients");
  q.run(out, options);
}

// The square of a value, by a library and by a vertex.
void byType(const OptionFlags& options, const Type& type, float value) {
  for (const bool vertex : {false, true}) {
    Graph graph(Target::createIPUTarget(1, 4, "ipu2"));
    popops::addCodelets(graph);
    Sequence program;
    const Tensor x = graph.addConstant(type, {1}, value);
    graph.setTileMapping(x, 0);
    if (vertex) {
      std::istringstream source(squares);
      graph.addCodelets(source);
      const Tensor out = graph.addVariable(type, {1}, "out");
      graph.setTileMapping(out, 0);
      const ComputeSet set = graph.addComputeSet("squares");
      const auto name = type == HALF ? "Square<half>" : "Square<float>";
      graph.setTileMapping(graph.addVertex(set, name, {{"x", x}, {"out", out}}), 0);
      program.add(Execute(set));
    } else {
      popops::mul(graph, x, x, program, "squares");
    }
    try {
      Engine(graph, program, options).loadAndRun(deviceOf(graph));
      std::cout << "no exception\n";
    } catch (const poplar_error& error) {
      std::cout << error.type << ": " << error.what() << '\n';
    }
  }
}

// Two draws without a seed, each by an engine that is loaded again.
void byGenerator(const OptionFlags& options) {
  Graph graph(Target::createIPUTarget(1, 4, "ipu2"));
  Sequence program;
  const Tensor like = graph.addVariable(INT, {3});
  graph.setTileMapping(like, 0);
  graph.createHostRead("out", poprand::uniform(graph, nullptr, 0, like, INT, 0, 1000000, program));
  IPUModel model;
  model.tilesPerIPU = 4;
  const Device device = model.createDevice();
  Engine engine(graph, program, options);
  for (int draw = 0; draw < 2; ++draw) {
    engine.load(device);
    engine.run();
    int values[3];
    engine.readTensor("out", values, values + 3);
    std::cout << values[0] << ' ' << values[1] << ' ' << values[2] << '\n';
  }
}

const std::map<std::string, std::function<void(const OptionFlags&)>> cases = {
    {"draws", byGenerator},
    {"float", [](const OptionFlags& options) { byType(options, FLOAT, 1e30f); }},
    {"half", [](const OptionFlags& options) { byType(options, HALF, 1000); }},
    {"half in range", [](const OptionFlags& options) { byType(options, HALF, 100); }},
    {"vertex", [](const OptionFlags& options) { byVertex(options, 0); }},
    {"vertex in range", [](const OptionFlags& options) { byVertex(options, 4); }},
    {"library", [](const OptionFlags& options) { byLibrary(options, 0); }},
    {"library in range", [](const OptionFlags& options) { byLibrary(options, 4); }},
    {"target", [](const OptionFlags& options) { Target::createIPUTarget(1, "ipu2", options); }},
    {"devices", [](const OptionFlags& options) { DeviceManager::createDeviceManager().getDevices(options); }},
    {"model", [](const OptionFlags& options) { IPUModel().createDevice(options); }},
    {"cpu", [](const OptionFlags& options) { Device::createCPUDevice(options); }},
    {"stream", [](const OptionFlags& options) {
       Graph graph(Target::createIPUTarget(1, 4, "ipu2"));
       graph.addHostToDeviceFIFO("in", FLOAT, 1, ReplicatedStreamMode::REPLICATE, options);
       graph.addDeviceToHostFIFO("out", FLOAT, 1, options);
     }},
    {"summary", [](const OptionFlags& options) {
       Quotient q(4);
       const Tensor out = popops::div(q.graph, q.x, q.y, q.program, "quotients");
       Engine(q.graph, q.program).printProfileSummary(std::cout, options);
     }},
};

}  // namespace

int main(int, char** arguments) {
  try {
    cases.at(arguments[1])({{arguments[2], arguments[3]}});
  } catch (const poplar_error& error) {
    std::cout << error.type << ": " << error.what() << '\n';
  }
}
