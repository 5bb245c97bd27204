// Runs a collective on four replicas, of which replica r has 10 r + i at element i: collectives NAME TYPE SIZE, for the
// group. Prints the result of each replica, one a line.
#include <gcl/Collectives.hpp>
#include <gcl/TileAllocation.hpp>
#include <poplar/CycleCount.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/detail/kernel.hpp>
#include <popnn/BatchNorm.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <poputil/TileMapping.hpp>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "devices.hpp"

using namespace poplar;
using gcl::CommGroup;

constexpr unsigned REPLICAS = 4;

// The mean and inverse deviation of {1, 2 channels, 3} over a group's replicas, or the gradient of the activations.
Tensor normalised(const std::string& name, Graph& graph, Tensor data, const CommGroup& group, program::Sequence& prog) {
  const unsigned size = group.replicaGroupSize == 0 ? REPLICAS : group.replicaGroupSize;
  const auto sums = [=](Graph& whole, const std::vector<Tensor>& parts, program::Sequence& steps, unsigned replicas,
                        const DebugContext& context, const OptionFlags& options) {
    if (replicas != size) std::abort();
    std::vector<Tensor> found;
    for (const auto& part : parts)
      found.push_back(gcl::allReduceCrossReplica(whole, part, gcl::CollectiveOperator::ADD, steps, group, context, options));
    return found;
  };
  const auto acts = data.reshape({1, 2, 3});
  const auto [mean, inverse] = popnn::bn::distributedBatchNormStatistics(graph, acts, 0.5f, prog, true, sums, size);
  if (name == "norm statistics") return concat(mean, inverse);
  const auto gradients = popops::mul(graph, acts, acts, prog), gamma = graph.addConstant<float>(FLOAT, {2}, {2, 3});
  graph.setTileMapping(gamma, 0);
  return popnn::bn::distributedBatchNormGradients(graph, acts, gradients, mean, inverse, gamma, prog, sums, size);
}

Tensor collective(const std::string& name, Graph& graph, Tensor data, const CommGroup& group, program::Sequence& prog) {
  if (name.rfind("norm", 0) == 0) return normalised(name, graph, data, group, prog);
  if (name == "gather") return gcl::allGatherCrossReplica(graph, data, prog, group);
  if (name == "to all") return gcl::allToAllCrossReplica(graph, data.reshape({2, 3}), prog, group);
  if (name == "within") return gcl::allReduceWithinReplica(graph, data.reshape({2, 3}), gcl::CollectiveOperator::MEAN, prog);
  if (name == "broadcast") return gcl::broadcastCrossReplica(graph, data, prog, group, 1);
  if (name == "scatter")
    return gcl::reduceScatterCrossReplica(graph, data.slice(0, 5), gcl::CollectiveOperator::ADD, prog, group);
  if (name == "in place") {
    gcl::allReduceInPlaceCrossReplica(graph, data, gcl::CollectiveOperator::MAX, prog, group);
    return data;
  }
  gcl::CollectiveOperator op;
  std::istringstream(name) >> op;
  std::ostringstream written;
  written << op;
  if (written.str() != name) std::abort();
  return gcl::allReduceCrossReplica(graph, data, op, prog, group);
}

int main(int, char** arguments) {
  Graph graph(Target::createIPUTarget(REPLICAS, 8, "ipu2"), replication_factor(REPLICAS));
  const CommGroup group(static_cast<gcl::CommGroupType>(std::atoi(arguments[2])), std::atoi(arguments[3]));
  program::Sequence prog;
  try {
    if (gcl::perIPUTiles(graph, 2, 3) != std::vector<unsigned>{2, 3, 4}) std::abort();
    const auto index = graph.addReplicationIndexConstant();
    graph.setTileMapping(index, 0);
    const auto numbers = graph.addConstant<float>(FLOAT, {6}, {0, 1, 2, 3, 4, 5});
    graph.setTileMapping(numbers, 1);
    const auto replica = popops::cast(graph, index, FLOAT, prog);
    using namespace popops::expr;
    const auto data = popops::map(graph, Add(Mul(_1, Const(10.f)), _2), {replica, numbers}, prog);
    const auto result = collective(arguments[1], graph, data, group, prog);
    graph.createHostRead("result", result);
    Engine engine(graph, prog);
    engine.load(deviceOf(graph));
    engine.run();
    std::vector<float> values(result.numElements() * REPLICAS);
    engine.readTensor("result", values.data(), values.data() + values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      std::cout << values[i] << ((i + 1) % result.numElements() == 0 ? '\n' : ' ');
  } catch (const std::exception& error) {
    std::cout << "error " << error.what() << '\n';
  }
}
