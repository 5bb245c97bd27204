// Programs that are stored by one process and run by another: executable_cases store FILE CODELETS, then
// executable_cases run FILE. `refuse CODELETS` prints the messages of executables that cannot be read.
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <poprand/RandomGen.hpp>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace poplar;
using namespace poplar::program;

namespace {

constexpr const char* doubles = R"(
#include <poplar/Vertex.hpp>
class Doubles : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> values;
  void compute() { for (unsigned i = 0; i < values.size(); ++i) values[i] *= 2; }
};
)";

Device createDevice() {
  IPUModel model;
  model.numIPUs = 2;
  model.tilesPerIPU = 4;
  return model.createDevice();
}

Tensor mapped(Graph& graph, const Type& type, std::vector<std::size_t> shape, const char* name, unsigned tile) {
  const Tensor tensor = graph.addVariable(type, shape, name);
  graph.setTileMapping(tensor, tile);
  return tensor;
}

// Two programs of two replicas: vertices of two codelet files on views, all kinds of control flow, streams, a remote
// buffer and a function of the host; and random numbers.
Executable build(const char* codelets) {
  const Device device = createDevice();
  Graph graph(device, replication_factor(2));
  graph.addCodelets(codelets);
  std::istringstream source(doubles);
  graph.addCodelets(source);

  const Tensor x = mapped(graph, FLOAT, {2, 4}, "x", 0), y = mapped(graph, FLOAT, {4, 2}, "y", 1);
  const Tensor count = mapped(graph, UNSIGNED_INT, {}, "count", 2), below = mapped(graph, BOOL, {}, "below", 2);
  graph.setInitialValue(count, 0u);
  const auto in = graph.addHostToDeviceFIFO("in", FLOAT, 8);
  const auto out = graph.addDeviceToHostFIFO("out", FLOAT, 8);
  const auto kept = graph.addRemoteBuffer("kept", FLOAT, 8, 2);

  const ComputeSet scale = graph.addComputeSet("scale"), twice = graph.addComputeSet("twice");
  const auto scaled = graph.addVertex(scale, "Scale<float>", {{"in", x.transpose().flatten()}, {"out", y.flatten()}});
  graph.setInitialValue(scaled["factor"], 0.5f);
  graph.setTileMapping(scaled, 1);
  graph.setTileMapping(graph.addVertex(twice, "Doubles", {{"values", y.flatten().slice(0, 4)}}), 1);

  const ComputeSet increment = graph.addComputeSet("increment"), check = graph.addComputeSet("check");
  const auto counter = graph.addVertex(increment, "Increment", {{"value", count}});
  graph.setInitialValue(counter["steps"], std::vector<unsigned>{1});
  graph.setTileMapping(counter, 2);
  const auto limit = graph.addVertex(check, "Below", {{"value", count}, {"limit", 3u}});
  graph.setTileMapping(limit, 2);

  const Function doubled = graph.addFunction(Execute(twice));
  const HostFunction report = graph.addHostFunction("report", {{UNSIGNED_INT, 1}}, {});
  Sequence body{Call(doubled), Execute(increment), Call(report, {count.flatten()}, {})};
  Sequence steps;
  steps.add(Copy(in, x));
  steps.add(Copy(x.flatten(), kept));
  steps.add(Execute(scale));
  steps.add(RepeatWhileTrue(Execute(check, below), below, body));
  Switch chosen(count, Abort("the count is not 3"));
  chosen.add(3, Repeat(2, Call(doubled)));
  steps.add(chosen);
  steps.add(If(below, Abort("the loop has not ended"), Sequence()));
  popops::mapInPlace(graph, popops::expr::Add(popops::expr::_1, popops::expr::Const(1)), {y}, steps);
  steps.add(Copy(y, out));
  steps.add(PrintTensor("sums", popops::reduce(graph, y, {0}, {popops::Operation::ADD}, steps)));
  graph.createHostRead("y", y, true);

  Sequence draws;
  const Tensor seed = graph.addConstant<unsigned>(UNSIGNED_INT, {2}, {7, 9});
  graph.setTileMapping(seed, 3);
  graph.createHostRead("drawn", poprand::uniform(graph, &seed, 3, x, FLOAT, -1, 1, draws));
  return compileGraph(graph, {steps, draws});
}

void print(const char* name, const std::vector<float>& values) {
  std::cout << name << ':';
  for (const float value : values) std::cout << ' ' << value;
  std::cout << '\n';
}

void run(const Executable& executable) {
  Engine engine(executable);
  std::vector<float> in(16), out(16), kept(8), y(16), drawn(16);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  engine.connectStream("in", in.data(), in.data() + in.size());
  engine.connectStream("out", out.data(), out.data() + out.size());
  std::vector<float> counts;
  for (unsigned replica = 0; replica < 2; ++replica)
    engine.connectHostFunction("report", replica, [&counts](ArrayRef<const void*> inputs, ArrayRef<void*>) {
      counts.push_back(static_cast<float>(*static_cast<const unsigned*>(inputs[0])));
    });
  engine.setPrintStream(std::cout);
  engine.load(createDevice());
  engine.run(0);
  engine.run(1);
  engine.copyFromRemoteBuffer("kept", kept.data(), 0, 1);
  engine.readTensor("y", y.data(), y.data() + y.size());
  engine.readTensor("drawn", drawn.data(), drawn.data() + drawn.size());
  print("out", out);
  print("y", y);
  print("kept", kept);
  print("counts", counts);
  print("drawn", drawn);
}

void refuse(const char* name, const std::string& content) {
  std::istringstream in(content);
  try {
    Executable::deserialize(in);
    std::cout << name << ": no exception\n";
  } catch (const poplar_error& error) {
    std::cout << name << ": " << error.what() << '\n';
  }
}

void refuseAll(const char* codelets) {
  std::ostringstream executable, graph;
  build(codelets).serialize(executable);
  Graph(createDevice()).serialize(graph, SerializationFormat::Binary);
  std::string file = executable.str();
  refuse("nothing", "");
  refuse("other", "\x7f" "ELF of another kind, with more than the first bytes of a file");
  refuse("short", file.substr(0, file.size() / 2));
  refuse("graph", graph.str());
  file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 1);
  refuse("damaged", file);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "store") {
    std::ofstream file(arguments[2], std::ios::binary);
    build(arguments[3]).serialize(file);
  } else if (mode == "run") {
    std::ifstream file(arguments[2], std::ios::binary);
    run(Executable::deserialize(file));
  } else if (mode == "direct") {
    run(build(arguments[2]));
  } else if (mode == "read") {
    std::ifstream file(arguments[2], std::ios::binary);
    refuse("file", {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  } else {
    refuseAll(arguments[2]);
  }
}
