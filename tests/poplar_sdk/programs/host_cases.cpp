// Functions of the host, cycles and the floating-point control: prints what the test reads, a line for each fact.
#include <iostream>
#include <poplar/CSRFunctions.hpp>
#include <poplar/CycleCount.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/HostFunctionCallback.hpp>
#include <poplar/IPUModel.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Loop.hpp>
#include <poputil/TileMapping.hpp>
#include <vector>

using namespace poplar;
using namespace poplar::program;

namespace {

Device createDevice(unsigned ipus = 1) {
  IPUModel model;
  model.numIPUs = ipus;
  model.tilesPerIPU = 4;
  return model.createDevice();
}

template <class Call>
void report(const char* name, Call call) {
  try {
    call();
    std::cout << name << ": no exception\n";
  } catch (const poplar_error& error) {
    std::cout << name << ": " << error.type << ": " << error.what() << '\n';
  }
}

Tensor mapped(Graph& graph, const Type& type, std::size_t count, unsigned tile) {
  const Tensor tensor = graph.addVariable(type, {count});
  graph.setTileMapping(tensor, tile);
  return tensor;
}

struct Scaler : HostCallback {
  explicit Scaler(float factor) : factor(factor) {}
  void operator()(ArrayRef<const void*> inputs, ArrayRef<void*> outputs) override {
    const auto* x = static_cast<const float*>(inputs[0]);
    for (int i = 0; i < 4; ++i) static_cast<float*>(outputs[0])[i] = factor * x[i];
    static_cast<int*>(outputs[1])[0] = *static_cast<const int*>(inputs[1]) + 1;
  }
  float factor;
};

void hostFunctions() {
  const Device device = createDevice(2);
  Graph graph(device, replication_factor(2));
  const Tensor x = mapped(graph, FLOAT, 4, 0), y = mapped(graph, FLOAT, 4, 1), n = mapped(graph, INT, 1, 2);
  graph.setInitialValue(x, ArrayRef<float>({1, 2, 3, 4}));
  graph.setInitialValue(n, ArrayRef<int>({5}));
  const HostFunction function = graph.addHostFunction("scale", {{FLOAT, 4}, {INT, 1}}, {{FLOAT, 4}, {INT, 1}});
  report("handle", [&] { graph.addHostFunction("scale", {}, {}); });
  // The result goes to the elements backwards, and the count is argument and result.
  const Sequence program(Repeat(3, Call(function, {x, n}, {y.reverse(0), n})));
  graph.createHostRead("y", y);
  graph.createHostRead("n", n);
  Engine engine(graph, program);
  engine.load(device);
  report("unconnected", [&] { engine.run(); });
  report("unknown", [&] { engine.connectHostFunction("other", 0, [](ArrayRef<const void*>, ArrayRef<void*>) {}); });
  report("replica", [&] { engine.connectHostFunction("scale", 2, [](ArrayRef<const void*>, ArrayRef<void*>) {}); });
  engine.connectHostFunction("scale", 0, std::make_unique<Scaler>(10.0f));
  engine.connectHostFunction("scale", 1, [scaler = Scaler(-1)](ArrayRef<const void*> in, ArrayRef<void*> out) mutable {
    scaler(in, out);
  });
  engine.run();
  float ys[8];
  int ns[2];
  engine.readTensor("y", ys, ys + 8);
  engine.readTensor("n", ns, ns + 2);
  std::cout << "y:";
  for (float value : ys) std::cout << ' ' << value;
  std::cout << "\nn: " << ns[0] << ' ' << ns[1] << '\n';
  report("types", [&] { Engine(graph, Call(function, {x}, {y, n})); });
  report("throws", [&] {
    engine.connectHostFunction("scale", 0, [](ArrayRef<const void*>, ArrayRef<void*>) { throw poplar_error("refused"); });
    engine.run();
  });
}

std::uint64_t read(Engine& engine, const char* handle) {
  unsigned words[2];
  engine.readTensor(handle, words, words + 2);
  return words[0] | static_cast<std::uint64_t>(words[1]) << 32;
}

// The same element-wise step, `inner` times in a loop whose count is only known when it runs.
void cycles() {
  const Device device = createDevice();
  Graph graph(device);
  const Tensor x = mapped(graph, FLOAT, 64, 0), limit = mapped(graph, INT, 1, 0);
  graph.createHostWrite("limit", limit);
  Sequence body, once, program;
  popops::addInPlace(graph, x, 1.0f, body);
  popops::addInPlace(graph, x, 1.0f, once);
  const Tensor static_count = cycleCount(graph, once, 0, SyncType::INTERNAL);
  const Tensor begin = cycleStamp(graph, program, 1, SyncType::INTERNAL);
  program.add(once);
  const Tensor one = cycleStamp(graph, program, 1, SyncType::INTERNAL);
  program.add(Repeat(7, body));
  const Tensor seven = cycleStamp(graph, program, 1, SyncType::INTERNAL);
  program.add(popops::countedForLoop(graph, 0, limit.reshape({}), 1, body));
  const Tensor loop = cycleStamp(graph, program, 1, SyncType::INTERNAL);
  graph.createHostRead("static", static_count);
  graph.createHostRead("begin", begin);
  graph.createHostRead("one", one);
  graph.createHostRead("seven", seven);
  graph.createHostRead("loop", loop);
  Engine engine(graph, program);
  engine.load(device);
  std::uint64_t lengths[2];
  for (int limited : {2, 12}) {
    engine.writeTensor("limit", &limited, &limited + 1);
    engine.run();
    lengths[limited > 2] = read(engine, "loop") - read(engine, "seven");
  }
  std::cout << "static: " << read(engine, "static") << "\nseven: " << read(engine, "seven") - read(engine, "one")
            << "\nlonger: " << lengths[1] - lengths[0] << '\n';
}

void control() {
  const Device device = createDevice();
  Graph graph(device);
  Sequence program;
  report("behaviour", [&] { setFloatingPointBehaviour(graph, program, {true, true, true, false, true}); });
  report("rounding on", [&] { setStochasticRounding(graph, program, true); });
  report("rounding off", [&] { setStochasticRounding(graph, program, false); });
}

}  // namespace

int main() {
  hostFunctions();
  cycles();
  control();
}
