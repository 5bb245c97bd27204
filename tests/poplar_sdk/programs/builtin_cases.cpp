// Prints the results of vertices with built-in functions of IPUs, by the case that the first argument names.
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>

#include <functional>
#include <iostream>
#include <map>
#include <numeric>

#include "devices.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

constexpr unsigned tiles = 3, count = 4000;

struct Draws {
  Graph graph{Target::createIPUTarget(1, 8, "ipu2")};
  Tensor uniform, normal, bits, tile;
  ComputeSet set = graph.addComputeSet("draw");

  explicit Draws(const char* codelets) {
    graph.addCodelets(codelets);
    uniform = graph.addVariable(FLOAT, {tiles, count}, "uniform");
    normal = graph.addVariable(FLOAT, {tiles, count}, "normal");
    bits = graph.addVariable(UNSIGNED_INT, {tiles, count}, "bits");
    tile = graph.addVariable(UNSIGNED_INT, {tiles}, "tile");
    for (unsigned i = 0; i < tiles; ++i) {
      for (const Tensor& tensor : {uniform, normal, bits, tile}) graph.setTileMapping(tensor[i], 2 * i);
      graph.setTileMapping(
          graph.addVertex(set, "Draw", {{"uniform", uniform[i]}, {"normal", normal[i]}, {"bits", bits[i]}, {"tile", tile[i]}}),
          2 * i);
    }
    graph.createHostRead("uniform", uniform);
    graph.createHostRead("normal", normal);
    graph.createHostRead("bits", bits);
    graph.createHostRead("tile", tile);
  }
};

template <class T>
void print(Engine& engine, const char* handle, std::size_t size) {
  std::vector<T> values(size);
  engine.readTensor(handle, values.data(), values.data() + size);
  for (const T value : values) std::cout << value << ' ';
  std::cout << '\n';
}

// Runs a vertex with the fields `in` and `out`.
void printResults(const char* codelets, const char* vertex, const std::vector<float>& values, std::size_t results) {
  Graph graph(Target::createIPUTarget(1, 8, "ipu2"));
  graph.addCodelets(codelets);
  const Tensor in = graph.addVariable(FLOAT, {values.size()}, VariableMappingMethod::LINEAR);
  const Tensor out = graph.addVariable(FLOAT, {results}, VariableMappingMethod::LINEAR);
  graph.setInitialValue(in, ArrayRef<float>(values));
  ComputeSet set = graph.addComputeSet("vertex");
  graph.setTileMapping(graph.addVertex(set, vertex, {{"in", in}, {"out", out}}), 0);
  graph.createHostRead("out", out);
  Engine engine(graph, Execute(set));
  engine.load(deviceOf(graph));
  engine.run();
  std::cout.precision(9);
  print<float>(engine, "out", results);
}

using Case = std::function<void(const char*)>;
const std::map<std::string, Case> cases = {
    {"draws",
     [](const char* codelets) {
       Draws draws(codelets);
       Engine engine(draws.graph, Execute(draws.set));
       engine.load(deviceOf(draws.graph));
       engine.run();
       print<float>(engine, "uniform", tiles * count);
       print<float>(engine, "normal", tiles * count);
       print<unsigned>(engine, "bits", tiles * count);
       print<unsigned>(engine, "tile", tiles);
     }},
    {"seeds",
     [](const char* codelets) {
       for (const char* seed : {"1", "1", "2"}) {
         Draws draws(codelets);
         Engine engine(draws.graph, Execute(draws.set), {{"prng.seed", seed}});
         engine.load(Device::createCPUDevice().createVirtualDevice(8));
         for (int run = 0; run < 2; ++run) {
           engine.run();
           print<unsigned>(engine, "bits", tiles * count);
         }
       }
     }},
    {"workers",
     [](const char* codelets) {
       Graph graph(Target::createIPUTarget(1, 8, "ipu2"));
       graph.addCodelets(codelets);
       const Tensor bits = graph.addVariable(UNSIGNED_INT, {6}, VariableMappingMethod::LINEAR);
       ComputeSet set = graph.addComputeSet("workers");
       graph.setTileMapping(graph.addVertex(set, "DrawByWorkers", {{"bits", bits}}), 0);
       graph.createHostRead("bits", bits);
       Engine engine(graph, Execute(set));
       engine.load(deviceOf(graph));
       engine.run();
       print<unsigned>(engine, "bits", 6);
     }},
    {"registers",
     [](const char* codelets) {
       Graph graph(Target::createIPUTarget(1, 8, "ipu2"));
       graph.addCodelets(codelets);
       const Tensor in = graph.addVariable(UNSIGNED_INT, {20}, VariableMappingMethod::LINEAR);
       const Tensor sums = graph.addVariable(UNSIGNED_INT, {6}, VariableMappingMethod::LINEAR), clocks = graph.clone(sums);
       std::vector<unsigned> values(20);
       std::iota(values.begin(), values.end(), 0u);
       graph.setInitialValue(in, ArrayRef<unsigned>(values));
       ComputeSet set = graph.addComputeSet("sum"), reads = graph.addComputeSet("reads");
       graph.setTileMapping(graph.addVertex(set, "SumByWorkers", {{"in", in}, {"sums", sums}, {"clocks", clocks}}), 0);
       graph.setTileMapping(graph.addVertex(reads, "ReadsRegister", {{"value", sums[0]}}), 0);
       graph.createHostRead("sums", sums);
       graph.createHostRead("clocks", clocks);
       Engine engine(graph, {Execute(set), Execute(reads)});
       engine.load(deviceOf(graph));
       engine.run();
       print<unsigned>(engine, "sums", 6);
       print<unsigned>(engine, "clocks", 6);
       try {
         engine.run(1);
       } catch (const std::exception& error) {
         std::cout << error.what() << '\n';
       }
     }},
    {"quantise",
     [](const char* codelets) {
       Graph graph(Target::createIPUTarget(1, 8, "ipu2"));
       graph.addCodelets(codelets);
       const Tensor in = graph.addVariable(HALF, {64}, VariableMappingMethod::LINEAR), out = graph.clone(in);
       std::vector<float> values(64);
       for (unsigned i = 0; i < 64; ++i) values[i] = (static_cast<float>(i) - 32) * 0.171f;
       graph.setInitialValue(in, ArrayRef<float>(values));
       ComputeSet set = graph.addComputeSet("quantise");
       VertexRef vertex = graph.addVertex(set, "Quantise", {{"in", in}, {"out", out}});
       graph.setInitialValue(vertex["limit"], 4.0f);
       graph.setTileMapping(vertex, 0);
       graph.createHostRead("in", in);
       graph.createHostRead("out", out);
       Engine engine(graph, Execute(set));
       engine.load(deviceOf(graph));
       engine.run();
       print<std::uint16_t>(engine, "in", 64);
       print<std::uint16_t>(engine, "out", 64);
     }},
    {"functions", [](const char* codelets) { printResults(codelets, "Functions", {0.3f, 1.5f}, 6); }},
    {"assigned", [](const char* codelets) { printResults(codelets, "Assigned", {3.0f, -1.75f}, 2); }},
    {"vectors", [](const char* codelets) { printResults(codelets, "ShortVectors", {3.0f, -1.7f}, 11); }},
};

}  // namespace

int main(int argument_count, char** words) {
  if (argument_count > 2) cases.at(words[1])(words[2]);
}
