// Runs the case that the first argument names; the second is the .gp file of codelets.cpp. Prints tensors, one a line.
#include <poplar/CycleCount.hpp>
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/detail/account.hpp>
#include <poplar/detail/kernel.hpp>

#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <thread>

#include "devices.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

std::string codelets;

// A graph of 8 tiles with its program.
struct Case {
  Graph graph;
  Sequence program;
  explicit Case(unsigned replicas = 1)
      : graph(Target::createIPUTarget(replicas, 8, "ipu2"), replication_factor(replicas)) {
    graph.addCodelets(codelets);
  }
  // A variable with the values 0, 1, 2, ... that lies on one tile.
  Tensor counted(std::vector<std::size_t> shape, unsigned tile = 0, Type type = FLOAT) {
    const Tensor tensor = graph.addVariable(type, shape, "counted");
    std::vector<float> values(tensor.numElements());
    std::iota(values.begin(), values.end(), 0.0f);
    graph.setInitialValue(tensor, ArrayRef<float>(values));
    graph.setTileMapping(tensor, tile);
    return tensor;
  }
  Tensor zeros(std::vector<std::size_t> shape, unsigned tile = 0, Type type = FLOAT) {
    const Tensor tensor = graph.addVariable(type, shape, "zeros");
    graph.setTileMapping(tensor, tile);
    return tensor;
  }
  void scale(ComputeSet set, const Tensor& in, const Tensor& out, float factor, unsigned tile = 0) {
    const bool is_half = in.elementType() == HALF;
    const VertexRef vertex = graph.addVertex(set, is_half ? "Scale<half>" : "Scale<float>", {{"in", in}, {"out", out}});
    graph.setInitialValue(vertex["factor"], factor);
    graph.setTileMapping(vertex, tile);
  }
  // Runs the program and prints the tensors.
  void run(const std::vector<Tensor>& shown) {
    for (std::size_t i = 0; i < shown.size(); ++i) graph.createHostRead("shown" + std::to_string(i), shown[i]);
    Engine engine(graph, program);
    engine.load(deviceOf(graph));
    engine.run();
    for (std::size_t i = 0; i < shown.size(); ++i) print(engine, "shown" + std::to_string(i), shown[i]);
  }
  void print(Engine& engine, const std::string& handle, const Tensor& tensor) {
    const std::size_t count = tensor.numElements() * graph.getReplicationFactor();
    std::vector<char> data(count * graph.getTarget().getTypeSize(tensor.elementType()));
    engine.readTensor(handle, data.data(), data.data() + data.size());
    std::vector<double> values(count);
    convertFrom(tensor.elementType(), data, values);
    for (double value : values) std::cout << value << ' ';
    std::cout << '\n';
  }
  static void convertFrom(Type type, const std::vector<char>& data, std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (type == FLOAT) values[i] = reinterpret_cast<const float*>(data.data())[i];
      else if (type == HALF) values[i] = static_cast<double>(reinterpret_cast<const _Float16*>(data.data())[i]);
      else if (type == BOOL) values[i] = data[i];
      else values[i] = reinterpret_cast<const int*>(data.data())[i];
    }
  }
};

void stridedViews() {
  Case c;
  const Tensor x = c.counted({4, 6}), y = c.zeros({6, 4});
  const ComputeSet set = c.graph.addComputeSet("strided");
  c.scale(set, x.subSample(2, 1).reverse(0).flatten(), y.transpose().slice(0, 3, 1).flatten().slice(0, 12), 2);
  c.scale(set, x[1].slice(0, 1).broadcast(6, 0), y.slice(3, 6, 0).slice(1, 3, 1).flatten(), 3, 5);
  c.program.add(Execute(set));
  c.run({y});
}

void oldValues() {
  Case c;
  const Tensor x = c.counted({8});
  const ComputeSet set = c.graph.addComputeSet("shift");
  for (unsigned i = 0; i < 7; ++i) c.scale(set, x.slice(i + 1, i + 2), x.slice(i, i + 1), 1, i);
  c.program.add(Execute(set));
  c.run({x});
}

void halves() {
  Case c;
  const Tensor x = c.counted({5}, 0, HALF), y = c.zeros({5}, 0, HALF);
  const ComputeSet set = c.graph.addComputeSet("halves");
  c.scale(set, x, y, 0.1f);
  c.program.add(Execute(set));
  c.run({y});
}

void rowsAndState() {
  Case c;
  const Tensor x = c.counted({3, 4}), sums = c.counted({4}), calls = c.zeros({}, 0, INT);
  const ComputeSet set = c.graph.addComputeSet("rows");
  const VertexRef vertex = c.graph.addVertex(set, "AddRows");
  c.graph.connect(vertex["rows"], std::vector<Tensor>{x[0], x[2], x.reverse(1)[1]});
  c.graph.connect(vertex["sums"], sums.reverse(0));
  c.graph.connect(vertex["calls"], calls);
  c.graph.setTileMapping(vertex, 1);
  c.program.add(Repeat(3, Execute(set)));
  c.run({sums, calls});
}

// Fields that are connected index by index, and values that become constants.
void indexedFields() {
  Case c;
  const Tensor x = c.counted({3, 4}), sums = c.counted({4}), calls = c.zeros({1}, 0, INT), y = c.zeros({3}),
               value = c.zeros({}, 0, UNSIGNED_INT);
  const ComputeSet set = c.graph.addComputeSet("indexed");
  const VertexRef rows = c.graph.addVertex(set, "AddRows", {{"calls", calls}});
  c.graph.setFieldSize(rows["rows"], 2);
  c.graph.connect(rows["rows"][1], x[2]);
  c.graph.connect(rows["rows"][0], x.transpose()[1].broadcast(2, 0).slice(0, 4));
  c.graph.connect(rows["sums"], std::vector<Tensor>{sums.slice(2, 4), sums.slice(0, 2)});
  const VertexRef scale = c.graph.addVertex(set, "Scale<float>", {{"factor", 2.0f}, {"out", y}});
  for (unsigned i = 0; i < 3; ++i) c.graph.connect(scale["in"][i], x[i][i]);
  const VertexRef increment = c.graph.addVertex(set, "Increment", {{"value", value}});
  c.graph.setFieldSize(increment["steps"], 3);
  c.graph.setInitialValue(increment["steps"][1], 40);
  c.graph.setInitialValue(increment["steps"][2], 2);
  const Tensor scaled = c.zeros({3});
  const VertexRef constant = c.graph.addVertex(set, "Scale<float>", {{"factor", 10.0f}, {"out", scaled}});
  c.graph.connect(constant["in"], ArrayRef<int>({1, 2, 3}));
  for (const VertexRef& vertex : {rows, scale, increment, constant}) c.graph.setTileMapping(vertex, 4);
  c.program.add(Execute(set));
  c.run({sums, y, value, scaled});
}

void workers() {
  Case c;
  const Tensor x = c.zeros({8}, 0, UNSIGNED_INT);
  const ComputeSet set = c.graph.addComputeSet("workers");
  c.graph.setTileMapping(c.graph.addVertex(set, "WorkerIds", {{"out", x}}), 0);
  c.program.add(Execute(set));
  c.run({x});
}

// Counts by `steps`; the program that does it once.
Sequence counting(Case& c, const Tensor& value, std::vector<unsigned> steps) {
  const ComputeSet set = c.graph.addComputeSet("counting");
  const VertexRef vertex = c.graph.addVertex(set, "Increment", {{"value", value}});
  c.graph.setInitialValue(vertex["steps"], steps);
  c.graph.setTileMapping(vertex, 0);
  return Sequence({Execute(set)});
}

void controlFlow() {
  Case c;
  const Tensor loops = c.zeros({}, 0, UNSIGNED_INT), once = c.zeros({}, 0, UNSIGNED_INT), cases = c.zeros({}, 0, UNSIGNED_INT),
               called = c.zeros({}, 0, UNSIGNED_INT), go = c.zeros({}, 0, BOOL);
  const ComputeSet condition = c.graph.addComputeSet("below");
  const VertexRef below = c.graph.addVertex(condition, "Below", {{"value", loops}});
  c.graph.setInitialValue(below["limit"], 10u);
  c.graph.setTileMapping(below, 0);
  c.program.add(RepeatWhileTrue(Execute(condition, go), go, counting(c, loops, {3})));
  c.program.add(If(go, counting(c, once, {100}), counting(c, once, {7})));
  Switch branch(loops, counting(c, cases, {1}));
  branch.add(12, counting(c, cases, {20})).add(9, counting(c, cases, {300}));
  c.program.add(branch);
  const Function function = c.graph.addFunction(counting(c, called, {1, 1}));
  c.program.add(Repeat(4, Sequence({Call(function), Call(function)})));
  c.program.add(Sync(SyncType::INTERNAL));
  c.run({loops, once, cases, called});
}

void copies() {
  Case c;
  const Tensor x = c.counted({3, 4}), y = c.zeros({4, 3}), z = c.counted({10});
  c.program.add(Copy(x.transpose(), y));
  c.program.add(Copy(z.slice(0, 8), z.slice(2, 10)));
  c.program.add(Copy(x.slice(1, 3, 1).reverse(0), x.slice(0, 2, 1)));
  Sequence later({Copy(y[0], y[1])});
  c.program.add(later);
  later.add(Copy(y[0], y[2]));  // not in the program
  c.run({y, z, x});
}

void streams() {
  Case c;
  const Tensor x = c.zeros({2, 3}), row = c.zeros({2, 3});
  const Tensor offsets = c.graph.addConstant<unsigned>(UNSIGNED_INT, {2}, {3, 1});
  c.graph.setTileMapping(offsets, 0);
  const DataStream in = c.graph.addHostToDeviceFIFO("in", FLOAT, 6), out = c.graph.addDeviceToHostFIFO("out", FLOAT, 6),
                   called = c.graph.addDeviceToHostFIFO("called", FLOAT, 6);
  const RemoteBuffer remote = c.graph.addRemoteBuffer("remote", FLOAT, 3, 4);
  c.program.add(Repeat(3, Sequence({Copy(in, x.transpose()), Copy(x, out), Copy(x, called)})));
  c.program.add(Copy(remote, row, offsets));
  c.program.add(Copy(x, remote, offsets));
  c.graph.createHostRead("row", row);
  Engine engine(c.graph, c.program);
  engine.load(deviceOf(c.graph));
  std::vector<float> values(12), results(18), remote_row{7, 8, 9};
  std::iota(values.begin(), values.end(), 0.0f);
  engine.connectStream("in", values.data(), values.data() + values.size());
  engine.connectStream("out", results.data(), results.data() + results.size());
  float sum = 0;
  engine.connectStreamToCallback("called", [&](void* data) { sum += static_cast<float*>(data)[1]; });
  engine.copyToRemoteBuffer(remote_row.data(), "remote", 3);
  engine.run();
  for (float value : results) std::cout << value << ' ';
  std::cout << '\n' << sum << '\n';
  c.print(engine, "row", row);
  engine.copyFromRemoteBuffer("remote", remote_row.data(), 1);
  for (float value : remote_row) std::cout << value << ' ';
  std::cout << '\n';
}

void replicas() {
  Case c(2);
  const Tensor index = c.graph.addReplicationIndexConstant(), mine = c.zeros({1}, 0, UNSIGNED_INT),
               other = c.zeros({1}, 0, UNSIGNED_INT);
  c.graph.setTileMapping(index, 0);
  c.program.add(Copy(index, mine));
  c.program.add(counting(c, mine[0], {10}));
  c.program.add(CrossReplicaCopy(mine, other, {{0, 1}, {1, 0}}));
  c.program.add(AssumeEqualAcrossReplicas(other, "assume"));
  c.run({mine, other});
}

// Writes the running sums of an input.
void addRunningSum(Case& c, const Tensor& in, const Tensor& out) {
  const auto sums = detail::Kernel::of([](const detail::KernelArguments& arguments, const std::size_t& count) {
    const auto* from = static_cast<const float*>(arguments.inputs[0]);
    auto* to = static_cast<float*>(arguments.outputs[0]);
    std::memset(to, 0, count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j <= i; ++j) to[i] += from[j];
  }, in.numElements());
  detail::addKernel(c.graph, c.program, {"sums"}, {in}, {out}, sums);
}

void kernels() {
  Case c;
  const Tensor x = c.counted({6}), y = c.zeros({3, 2}), z = c.counted({8});
  addRunningSum(c, x, y.transpose().flatten());
  addRunningSum(c, x, x);
  addRunningSum(c, z.slice(0, 7), z.slice(1, 8));
  c.run({y, x, z});
}

void account() {
  Case c;
  const Tensor x = c.counted({6}), y = c.zeros({6}, 1);
  c.graph.setTileMapping(x.slice(4, 6), 2);
  const ComputeSet set = c.graph.addComputeSet("account");
  for (unsigned i = 0; i < 7; ++i) {
    const Tensor sums = c.zeros({2}, 3), calls = c.zeros({}, 3, INT);
    const VertexRef vertex = c.graph.addVertex(set, "AddRows", {{"rows", x.reshape({3, 2})}, {"sums", sums}, {"calls", calls}});
    c.graph.setTileMapping(vertex, 3);
  }
  c.program.add(Repeat(5, Sequence({Execute(set), Copy(x, y, false, "move")})));
  const auto result = detail::describe(c.graph, {c.program});
  for (const auto& step : result.steps) {
    std::cout << step.name << ' ' << step.times << ' ' << step.cycles << ' ' << step.exchange_bytes;
    for (const auto& [name, count] : step.vertices) std::cout << ' ' << name << ' ' << count;
    std::cout << '\n';
  }
  for (unsigned tile = 0; tile < 3; ++tile) std::cout << result.tile_bytes[tile] << ' ';
  std::cout << '\n';
  c.run({cycleCount(c.graph, c.program, 0, SyncType::INTERNAL)});
}

void mappings() {
  Case c;
  const Tensor x = c.graph.addVariable(FLOAT, {2, 6}, "x");
  for (unsigned i = 0; i < 6; ++i) c.graph.setTileMapping(x.slice(i, i + 1, 1), i / 2);
  Graph part = c.graph.createVirtualGraph(1, 4);
  const Tensor on_part = part.addVariable(FLOAT, {3});
  part.setTileMapping(on_part, 2);
  for (const Tensor& tensor : {x.transpose(), c.graph.clone(x.transpose()), c.graph.clone(x.transpose().slice(2, 5)), on_part}) {
    const auto mapping = c.graph.getTileMapping(tensor);
    for (std::size_t tile = 0; tile < mapping.size(); ++tile)
      for (const auto& interval : mapping[tile]) std::cout << tile << ':' << interval.begin() << '-' << interval.end() << ' ';
    std::cout << '\n';
  }
  const Tensor flat = concat(x[1], x[0]);
  for (const auto& group : c.graph.getSortedContiguousRegions(flat, {{0, 2}, {4, 9}})) {
    for (const auto& interval : group) std::cout << interval.begin() << '-' << interval.end() << ' ';
    std::cout << "; ";
  }
  Tensor simple = flat.reverse(0);
  c.graph.reorderToSimplify(&simple, {});
  std::cout << '\n' << (simple == x.flatten()) << '\n';
}

void threads() {
  Case c;
  const Tensor x = c.zeros({1000}), y = c.zeros({1000});
  const ComputeSet set = c.graph.addComputeSet("threads");
  for (unsigned i = 0; i < 100; ++i) c.scale(set, x.slice(i * 10, i * 10 + 10), y.slice(i * 10, i * 10 + 10), 2, i % 8);
  c.program.add(Repeat(20, Execute(set)));
  c.graph.createHostWrite("x", x);
  c.graph.createHostRead("y", y);
  const Executable executable = compileGraph(c.graph, {c.program});
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> running;
  for (int number = 0; number < 4; ++number) {
    running.emplace_back([&, number] {
      Engine engine(executable);
      engine.load(deviceOf(c.graph));
      std::vector<float> values(1000, static_cast<float>(number)), results(1000);
      for (int call = 0; call < 20; ++call) {
        engine.writeTensor("x", values.data(), values.data() + values.size());
        engine.run();
        engine.readTensor("y", results.data(), results.data() + results.size());
        for (float result : results) wrong[number] += result != 2.0f * number;
      }
    });
  }
  for (auto& thread : running) thread.join();
  for (int count : wrong) std::cout << count << ' ';
  std::cout << '\n';
}

void printed() {
  Case c;
  const Tensor x = c.counted({2, 3}), big = c.counted({2000});
  const ComputeSet set = c.graph.addComputeSet("print");
  c.scale(set, x.flatten(), x.flatten(), 12.5f);
  c.program.add(PrintTensor(x));
  c.program.add(Execute(set));
  c.program.add(PrintTensor("x", x));
  c.program.add(PrintTensor("big", big));
  Engine engine(c.graph, c.program);
  engine.load(deviceOf(c.graph));
  engine.setPrintStream(std::cout);
  engine.run();
}

void devices() {
  const auto all = DeviceManager::createDeviceManager().getDevices();
  const Target& target = all[0].getTarget();
  std::cout << target.getTargetArchString() << ' ' << target.getTilesPerIPU() << ' ' << target.getBytesPerTile() << ' '
            << static_cast<int>(target.getTileClockFrequency() / 1e6) << ' ' << target.getNumWorkerContexts() << ' '
            << target.getExchangeBytesPerCycle() << ' ' << target.getVectorWidth(HALF) << ' '
            << target.getNumConvUnits(HALF, HALF) << ' ' << target.getNumConvUnits(FLOAT, FLOAT) << " \n";
  for (const Device& device : all) std::cout << device.getTarget().getNumIPUs() << ' ';
  std::cout << '\n';
}

// Errors: each prints what is wrong.
void unmapped() {
  Case c;
  const Tensor x = c.graph.addVariable(FLOAT, {4}, "x");
  c.graph.setTileMapping(x.slice(0, 3), 0);
  c.program.add(Copy(c.counted({4}), x));
  c.run({});
}
void unmappedVertex() {
  Case c;
  const ComputeSet set = c.graph.addComputeSet("set");
  c.graph.addVertex(set, "Thrower", {{"in", c.counted({})}});
  c.program.add(Execute(set));
  c.run({});
}
void overlap() {
  Case c;
  const Tensor x = c.counted({6}), y = c.zeros({6});
  const ComputeSet set = c.graph.addComputeSet("set");
  c.scale(set, x.slice(0, 4), y.slice(0, 4), 1);
  c.scale(set, x.slice(2, 6), y.slice(2, 6), 1);
  c.program.add(Execute(set));
  c.run({});
}
void unconnected() {
  Case c;
  const ComputeSet set = c.graph.addComputeSet("set");
  c.graph.setTileMapping(c.graph.addVertex(set, "Thrower"), 0);
  c.program.add(Execute(set));
  c.run({});
}
void wrongType() {
  Case c;
  const ComputeSet set = c.graph.addComputeSet("set");
  c.graph.addVertex(set, "Thrower", {{"in", c.zeros({}, 0, INT)}});
}
void unknownField() {
  Case c;
  const ComputeSet set = c.graph.addComputeSet("set");
  c.graph.connect(c.graph.addVertex(set, "Thrower")["input"], c.zeros({}));
}
void unknownVertex() {
  Case c;
  c.graph.addVertex(c.graph.addComputeSet("set"), "Scale<int>");
}
void throws() {
  Case c;
  const ComputeSet set = c.graph.addComputeSet("set");
  c.graph.setTileMapping(c.graph.addVertex(set, "Thrower", {{"in", c.counted({})}}), 6);
  c.program.add(Execute(set));
  c.run({});
}
void outOfBounds() {
  Case c;
  const ComputeSet set = c.graph.addComputeSet("set");
  c.scale(set, c.counted({3}), c.zeros({4}), 1, 2);
  c.program.add(Execute(set));
  c.run({});
}
void constantWritten() {
  Case c;
  const Tensor constant = c.graph.addConstant(FLOAT, {2}, 1.0f);
  c.graph.setTileMapping(constant, 0);
  c.program.add(Copy(c.counted({2}), constant));
}
void floatPredicate() {
  Case c;
  c.program.add(If(c.counted({}), Sequence(), Sequence()));
}
void unconnectedStream() {
  Case c;
  const Tensor x = c.zeros({2});
  c.program.add(Copy(c.graph.addHostToDeviceFIFO("in", FLOAT, 2), x));
  c.run({});
}
void tileTooHigh() {
  Case c;
  c.zeros({2}, 8);
}

void drawn() {
  Case c;
  const Tensor x = c.counted({4}), y = c.zeros({4});
  const ComputeSet set = c.graph.addComputeSet("scaled"), unused = c.graph.addComputeSet("unused");
  c.scale(set, x.slice(0, 2), y.slice(2, 4), 2, 1);
  c.scale(unused, x, y, 3);
  c.program.add(Repeat(2, Execute(set)));
  const auto nothing = detail::Kernel::of([](const detail::KernelArguments&) {});
  detail::addKernel(c.graph, c.program, {"kernel"}, {y}, {x}, nothing);
  c.graph.outputComputeGraph(std::cout, {c.program});
}

void names() {
  Case c;
  const Tensor x = c.counted({4}), y = c.zeros({4}), z = c.graph.addVariable(FLOAT, {1}, "z");
  std::cout << concat(std::vector<Tensor>{x.reverse(0), z, y, x}).getDebugStr() << '\n' << z.getDebugStr() << '\n';
}

void typesAndIntervals() {
  Case c;
  const auto made = [&c](Type& type) { return c.zeros({6}, 0, type); };
  const Tensor x = made(UNSIGNED_INT);
  c.graph.setTileMapping(x.slice(2, 6), 3);
  for (const auto& intervals : c.graph.getTileMapping(x))
    for (const Interval& interval : intervals) std::cout << interval.lower() << ' ' << interval.upper() << ' ';
  std::cout << '\n';
}

const std::map<std::string, std::function<void()>> cases = {
    {"strided views", stridedViews}, {"old values", oldValues}, {"halves", halves}, {"rows and state", rowsAndState},
    {"workers", workers}, {"indexed fields", indexedFields}, {"control flow", controlFlow}, {"copies", copies}, {"streams", streams},
    {"replicas", replicas}, {"kernels", kernels}, {"account", account}, {"mappings", mappings}, {"threads", threads},
    {"printed", printed}, {"drawn", drawn}, {"names", names}, {"devices", devices}, {"types and intervals", typesAndIntervals}, {"unmapped", unmapped}, {"unmapped vertex", unmappedVertex}, {"overlap", overlap},
    {"unconnected", unconnected}, {"wrong type", wrongType}, {"unknown field", unknownField},
    {"unknown vertex", unknownVertex}, {"throws", throws}, {"out of bounds", outOfBounds},
    {"constant written", constantWritten}, {"float predicate", floatPredicate}, {"unconnected stream", unconnectedStream}, {"tile too high", tileTooHigh},
};

}  // namespace

int main(int, char** arguments) {
  codelets = arguments[2];
  try {
    cases.at(arguments[1])();
  } catch (const poplar_error& error) {
    std::cout << error.type << ": " << error.what() << '\n';
  }
}
