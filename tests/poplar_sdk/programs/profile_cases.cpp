// Prints what an engine and a graph tell of themselves, as JSON, by the case that the first argument names.
#include <poplar/CycleCount.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>

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
    additions.add(Repeat(3, Execute(set)));
    graph.createHostWrite("from", from);
    graph.createHostRead("to", to);
  }
};

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
