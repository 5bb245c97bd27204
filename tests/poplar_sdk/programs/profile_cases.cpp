// Prints what an engine and a graph tell of themselves, as JSON, by the case that the first argument names.
#include <poplar/CycleCount.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/VertexIntrospector.hpp>

#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "devices.hpp"

using namespace poplar;
using namespace poplar::program;

namespace {

// A copy from tile 0 to tile 1, and vertices that sum rows on tile 2.
struct Sums {
  Graph graph{Target::createIPUTarget(1, 4, "ipu2")};
  Tensor from, to, sums;
  Sequence copies, additions;

  explicit Sums(const char* codelets) {
    graph.addCodelets(codelets);
    const std::string prefix = "sums";
    from = graph.addVariable(FLOAT, {2, 8}, {prefix, "from"});
    to = graph.addVariable(FLOAT, {2, 8}, {prefix, "to"});
    sums = graph.addVariable(FLOAT, {8}, {prefix, "sums"});
    Tensor calls = graph.addVariable(INT, {}, {prefix, "calls"});
    graph.setTileMapping(from, 0);
    graph.setTileMapping(to, 1);
    graph.setTileMapping(sums, 2);
    graph.setTileMapping(calls, 2);
    ComputeSet set = graph.addComputeSet({prefix, "add"});
    VertexRef vertex = graph.addVertex(set, "AddRows", {{"rows", to.slice(0, 2)}, {"sums", sums}, {"calls", calls}});
    graph.setTileMapping(vertex, 2);
    graph.setPerfEstimate(vertex, 100);
    copies.add(Copy(from, to));
    additions.add(Repeat(3, Block(Execute(set), {prefix, "block"})));
    graph.createHostWrite("from", from);
    graph.createHostRead("to", to);
  }
};

// Prints the cycles of vertices whose types have functions that estimate them: of a program, and once it was stored.
void printEstimates(const char* codelets) {
  Graph graph(Target::createIPUTarget(1, 4, "ipu2"));
  graph.addCodelets(codelets);
  const Tensor rows = graph.addVariable(FLOAT, {3, 5}), sums = graph.addVariable(FLOAT, {5});
  const Tensor calls = graph.addVariable(INT, {});
  const Tensor halves = graph.addVariable(HALF, {7}), empty = graph.addVariable(HALF, {0});
  for (const Tensor& tensor : {rows, sums, calls, halves, empty}) graph.setTileMapping(tensor, 1);
  Sequence program;
  const auto add = [&](const char* type, ArrayRef<Graph::ConnectionDesc> fields) {
    const ComputeSet set = graph.addComputeSet(type);
    const VertexRef vertex = graph.addVertex(set, type, fields);
    graph.setTileMapping(vertex, 1);
    program.add(Execute(set));
    return vertex;
  };
  add("AddRows", {{"rows", rows}, {"sums", sums}, {"calls", calls}});
  graph.setInitialValue(add("Scale<half>", {{"in", halves}, {"out", halves}})["factor"], 2.5f);
  graph.setInitialValue(add("Scale< half >", {{"in", empty}, {"out", empty}})["factor"], 4);
  graph.setPerfEstimate(add("Below", {{"value", calls.reinterpret(UNSIGNED_INT)}, {"limit", 3u}}), 77);
  graph.registerPerfEstimator("AddRows", [](const VertexIntrospector& vertex, const Target&) {
    const FieldData field = vertex.getFieldInfo("rows");
    return std::uint64_t(1000 * field.size() + 100 * field.getSizeAtIndex(2) + vertex.getFieldInfo("sums").size());
  });
  graph.registerPerfEstimator("Scale<half >", [](const VertexIntrospector& vertex, const Target& target) {
    const auto factor = vertex.getFieldInfo("factor").getInitialValue<float>(target);
    return VertexPerfEstimate(10 * vertex.getFieldInfo("in").size() + std::uint64_t(2 * factor), 3);
  });
  for (const char* type : {"Below", "a::VertexOfALibrary"})
    graph.registerPerfEstimator(type, [](const VertexIntrospector&, const Target&) { return std::uint64_t(5); });
  const auto print = [&](Engine&& engine) {
    engine.load(deviceOf(graph));
    engine.run();
    serializeToJSON(std::cout, engine.getExecutionProfile());
    std::cout << '\n';
  };
  std::stringstream file;
  Executable executable = compileGraph(graph, {program});
  executable.serialize(file);
  print(Engine(std::move(executable)));
  print(Engine(Executable::deserialize(file)));
}

void failInEstimate(const char* codelets, const std::function<void(const VertexIntrospector&, const Target&)>& look) {
  Sums sums(codelets);
  const ComputeSet set = sums.graph.addComputeSet("rows");
  const VertexRef vertex = sums.graph.addVertex(set, "Scale<float>", {{"in", sums.to[0]}, {"out", sums.sums}});
  sums.graph.setTileMapping(vertex, 2);
  sums.graph.registerPerfEstimator("Scale<float>", [&](const VertexIntrospector& asked, const Target& target) {
    look(asked, target);
    return VertexPerfEstimate();
  });
  Engine(sums.graph, Execute(set)).run();
}

using Case = std::function<void(const char*)>;
const std::map<std::string, Case> cases = {
    {"execution",
     [](const char* codelets) {
       Sums sums(codelets);
       Engine engine(sums.graph, {sums.copies, sums.additions});
       engine.load(deviceOf(sums.graph));
       engine.run(1);
       engine.run(1);
       engine.disableExecutionProfiling();
       engine.run(1);
       engine.enableExecutionProfiling();
       engine.run(0);
       serializeToJSON(std::cout, engine.getExecutionProfile());
       std::cout << '\n';
       engine.resetExecutionProfile();
       serializeToJSON(std::cout, engine.getProfile()["executionProfile"]);
     }},
    {"graph",
     [](const char* codelets) {
       Sums sums(codelets);
       Engine engine(sums.graph, {sums.copies, sums.additions});
       engine.load(deviceOf(sums.graph));
       serializeToJSON(std::cout, engine.getGraphProfile());
     }},
    {"serialize", [](const char* codelets) { Sums(codelets).graph.serialize(std::cout, SerializationFormat::JSON); }},
    {"drawing", [](const char* codelets) { Sums(codelets).graph.outputVertexGraph(std::cout); }},
    {"typed values",
     [](const char* codelets) {
       Sums sums(codelets);
       Engine engine(sums.graph, sums.copies);
       engine.load(deviceOf(sums.graph));
       engine.writeTensor<float>("from", std::vector<float>(16, 2.5f));
       engine.run();
       std::vector<float> values(16);
       engine.readTensor("to", values.data(), values.data() + values.size());
       for (const float value : values) std::cout << value << ' ';
     }},
    {"devices",
     [](const char*) {
       std::cout << Device::createCPUDevice().getTarget().getNumIPUs() << ' '
                 << Device::createCPUDevice(3).getTarget().getNumIPUs();
     }},
    {"estimates", printEstimates},
    {"no field",
     [](const char* codelets) { failInEstimate(codelets, [](auto& v, auto&) { v.getFieldInfo("out2"); }); }},
    {"no row",
     [](const char* codelets) {
       failInEstimate(codelets, [](auto& v, auto&) { v.getFieldInfo("in").getSizeAtIndex(0); });
     }},
    {"no value",
     [](const char* codelets) {
       failInEstimate(codelets,
                      [](auto& v, auto& target) { v.getFieldInfo("factor").template getInitialValue<float>(target); });
     }},
    {"no function",
     [](const char*) { Graph(Target::createIPUTarget(1, 4, "ipu2")).registerPerfEstimator("AddRows", {}); }},
    {"no devices", [](const char*) { Device::createCPUDevice(0u); }},
    {"abort",
     [](const char*) {
       Graph graph(Target::createIPUTarget(1, 4, "ipu2"));
       Engine(graph, Abort("the loss is not finite")).loadAndRun(deviceOf(graph));
     }},
    {"compiler output",
     [](const char* codelets) {
       Graph graph(Target::createIPUTarget(1, 4, "ipu2"));
       std::ostringstream messages;
       graph.addCodelets(codelets, CodeletFileType::CppSource, "-DNOT_USED -Wno-all", messages);
       std::cout << graph.hasCodelet("AddRows") << messages.str();
     }},
};

}  // namespace

int main(int count, char** words) {
  try {
    if (count > 2) cases.at(words[1])(words[2]);
  } catch (const std::exception& error) {
    std::cout << error.what();
  }
}
