// Forms in which published programs call Poplar: prints what the test reads, a line for each fact.
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/PrintTensor.hpp>
#include <poplar/RuntimeOptions.hpp>
#include <pva/pva.hpp>
#include <pvti/pvti.hpp>

#include <array>
#include <chrono>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string_view>
#include <vector>

#include "devices.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

// A number of a library for half precision.
struct LibraryHalf {
  std::uint16_t bits;
  operator float() const { return 0; }
};

// Any step is a sequence.
Sequence twice(const Program& program) { return Repeat(2, program); }

// A step without parts has a name as text.
Sequence named(const std::string& name) { return Sequence({}, name + "/empty"); }

class Info : public DebugInfo {
 public:
  Info() : DebugInfo("op", "test") {
    const std::string api = "sum";
    setValue("api", api);
  }
};

// A callback that only fetches, as a class of the program's.
struct Counting : public LegacyStreamCallback {
  void fetch(void* data) override { std::iota(static_cast<float*>(data), static_cast<float*>(data) + 3, 5.0f); }
};

struct Program8 {
  Graph graph{Target::createIPUTarget(1, 8, "ipu2")};
  Tensor variable(const Type& type, std::size_t count) {
    const Tensor tensor = graph.addVariable(type, {count}, VariableMappingMethod::LINEAR);
    return tensor;
  }
};

void repeatedCopies() {
  Program8 p;
  const Tensor x = p.variable(FLOAT, 3);
  const DataStream in = p.graph.addHostToDeviceFIFO("in", FLOAT, 3), out = p.graph.addDeviceToHostFIFO("out", FLOAT, 3);
  std::vector<float> data = {1, 2, 3, 4, 5, 6}, result(6);
  Engine engine(p.graph, twice(Sequence(named("parts"), Copy(in, x), Copy(x, out))));
  engine.load(deviceOf(p.graph));
  const Engine::TimerTimePoint start = engine.getTimeStamp();
  engine.connectStream<float>("in", data);
  engine.connectStream("out", ArrayRef(result));
  engine.run();
  std::cout << "out:";
  for (const float value : result) std::cout << ' ' << value;
  std::cout << "\ntime: " << engine.reportTiming(start, start + std::chrono::milliseconds(1500)) << '\n';
}

void callbacks() {
  Program8 p;
  const Tensor x = p.variable(FLOAT, 3);
  Engine engine(p.graph, Sequence(Copy(p.graph.addHostToDeviceFIFO("in", FLOAT, 3), x), PrintTensor("counted", x)));
  engine.load(deviceOf(p.graph));
  engine.connectStreamToCallback("in", std::make_unique<Counting>());
  engine.setPrintTensorStream(std::cout);
  engine.run();
}

void constants() {
  Program8 p;
  const std::vector<LibraryHalf> halves = {{0x3c00}, {0xc100}};  // 1 and -2.5
  const std::array<int, 2> numbers = {7, -8};
  const Tensor h = p.graph.addConstant(HALF, {2}, ArrayRef(halves)), n = p.graph.addConstant(INT, {2}, ArrayRef(numbers));
  for (const Tensor& tensor : {h, n}) p.graph.setTileMapping(tensor, 0);
  Engine engine(p.graph, Sequence(PrintTensor("halves", h), PrintTensor("numbers", n)));
  engine.load(deviceOf(p.graph));
  engine.setPrintTensorStream(std::cout);
  engine.run();
}

// A field of one element takes any tensor of one element.
void oneElement() {
  Program8 p;
  std::stringstream source(
      "#include <poplar/Vertex.hpp>\nclass Twice : public poplar::Vertex { public: poplar::Input<float> in; "
      "poplar::Output<float> out; bool compute() { *out = 2 * *in; return true; } };");
  p.graph.addCodelets(source);
  const Tensor in = p.graph.addConstant(FLOAT, {1, 1}, 3.5f), out = p.variable(FLOAT, 1);
  const ComputeSet set = p.graph.addComputeSet("twice");
  const VertexRef vertex = p.graph.addVertex(set, "Twice", {{"in", in}, {"out", out.reshape({1, 1, 1})}});
  p.graph.setTileMapping(in, 0);
  p.graph.setTileMapping(vertex, 0);
  Engine engine(p.graph, Sequence(Execute(set), PrintTensor("twice", out)));
  engine.load(deviceOf(p.graph));
  engine.setPrintTensorStream(std::cout);
  engine.run();
}

}  // namespace

int main() {
  repeatedCopies();
  callbacks();
  constants();
  oneElement();
  std::cout << "cpus: " << Device::createCPUDevice({}).getTarget().getNumIPUs() << ' '
            << Device::createCPUDevice().getTarget().getNumIPUs() << ' '
            << Device::createCPUDevice(2).getTarget().getNumIPUs() << '\n';
  std::cout << "api: " << Info().getValues().at("api").asString() << '\n';
  const std::string_view label = "label of a longer text";
  pvti::Tracepoint point(&pvti::tracePoplar, label.data(), 5);
}
