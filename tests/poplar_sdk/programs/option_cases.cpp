// Passes the option of the second and third argument to what the first names; prints results, or the error.
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <popops/ElementWise.hpp>
#include <popops/codelets.hpp>

#include <functional>
#include <iostream>
#include <map>
#include <sstream>

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

const std::map<std::string, std::function<void(const OptionFlags&)>> cases = {
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
