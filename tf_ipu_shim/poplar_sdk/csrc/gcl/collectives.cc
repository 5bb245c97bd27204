// Collectives of replicas: each gathers the data of its group, and computes its own result.
#include <algorithm>
#include <istream>
#include <ostream>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>

#include "gcl/exchange.hpp"

namespace gcl {

using namespace detail;
using poplar::DebugContext;
using poplar::Graph;

namespace {

constexpr const char *NAMES[] = {"ADD", "MEAN", "MUL", "MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD", "LOCAL"};

popops::Operation operationOf(CollectiveOperator op) {
  switch (op) {
    case CollectiveOperator::MUL: return popops::Operation::MUL;
    case CollectiveOperator::MIN: return popops::Operation::MIN;
    case CollectiveOperator::MAX: return popops::Operation::MAX;
    case CollectiveOperator::LOGICAL_AND: return popops::Operation::LOGICAL_AND;
    case CollectiveOperator::LOGICAL_OR: return popops::Operation::LOGICAL_OR;
    case CollectiveOperator::SQUARE_ADD: return popops::Operation::SQUARE_ADD;
    default: return popops::Operation::ADD;
  }
}

Tensor reducedRows(Graph &graph, const Tensor &rows, CollectiveOperator op, Sequence &prog, const DebugContext &name) {
  popops::ReduceParams params(operationOf(op));
  if (op == CollectiveOperator::MEAN) {
    const auto factor = poputil::detail::constantScalar(graph, poplar::FLOAT, 1.0f / rows.dim(0), {name, "mean"});
    params = popops::ReduceParams(popops::Operation::ADD, false, factor);
  }
  return popops::reduce(graph, rows, {0}, params, prog, {name, "reduce"});
}

Tensor reduced(Graph &graph, const Group &group, const Tensor &data, CollectiveOperator op, Sequence &prog,
               const DebugContext &name) {
  if (op == CollectiveOperator::LOCAL) {
    const auto out = graph.clone(data, {name, "local"});
    prog.add(poplar::program::Copy(data, out, false, {name, "local"}));
    return out;
  }
  return reducedRows(graph, gathered(graph, group, data, prog, name), op, prog, name);
}

void checkRows(const Group &group, const Tensor &data, const char *function) {
  if (data.rank() == 0 || data.dim(0) != group.size())
    poputil::detail::fail(function, "the data has the shape " + poputil::detail::describeShape(data.shape()) +
                          "; expected " + std::to_string(group.size()) + " rows", "Pass a row for each replica");
}

}  // namespace

std::istream &operator>>(std::istream &in, CollectiveOperator &op) {
  std::string token;
  in >> token;
  const auto *found = std::find(std::begin(NAMES), std::end(NAMES), token);
  if (found == std::end(NAMES))
    poputil::detail::fail("Reading a collective operator", "there is none named '" + token + "'",
                          "Write a name such as ADD");
  op = static_cast<CollectiveOperator>(found - std::begin(NAMES));
  return in;
}

std::ostream &operator<<(std::ostream &os, const CollectiveOperator &op) { return os << NAMES[static_cast<int>(op)]; }

Tensor allReduceCrossReplica(Graph &graph, const Tensor &data, CollectiveOperator op, Sequence &prog,
                             const CommGroup &group, const DebugContext &debugContext, const OptionFlags &options) {
  checkOptions("gcl::allReduceCrossReplica", options, collective_options);
  return reduced(graph, Group(graph, group, "gcl::allReduceCrossReplica"), data, op, prog,
                 {debugContext, "allReduce"});
}

std::vector<Tensor> allReduceCrossReplica(Graph &graph, const std::vector<Tensor> &datas, CollectiveOperator op,
                                          Sequence &prog, const CommGroup &group, const DebugContext &debugContext,
                                          const OptionFlags &options) {
  std::vector<Tensor> results;
  for (const auto &data : datas)
    results.push_back(allReduceCrossReplica(graph, data, op, prog, group, debugContext, options));
  return results;
}

void allReduceToDestinationCrossReplica(Graph &graph, const Tensor &data, const Tensor &destination,
                                        CollectiveOperator op, Sequence &prog, const CommGroup &group,
                                        const DebugContext &debugContext, const OptionFlags &options) {
  const auto result = allReduceCrossReplica(graph, data, op, prog, group, debugContext, options);
  prog.add(poplar::program::Copy(result, destination, false, {debugContext, "toDestination"}));
}

void allReduceInPlaceCrossReplica(Graph &graph, Tensor &data, CollectiveOperator op, Sequence &prog,
                                  const CommGroup &group, const DebugContext &debugContext,
                                  const OptionFlags &options) {
  allReduceToDestinationCrossReplica(graph, data, data, op, prog, group, debugContext, options);
}

Tensor reduceScatterCrossReplica(Graph &graph, const Tensor &data, CollectiveOperator op, Sequence &prog,
                                 const CommGroup &group, const DebugContext &debugContext,
                                 const OptionFlags &options) {
  constexpr auto FUNCTION = "gcl::reduceScatterCrossReplica";
  checkOptions(FUNCTION, options, collective_options);
  if (data.rank() != 1)
    poputil::detail::fail(FUNCTION, "the data has the shape " + poputil::detail::describeShape(data.shape()),
                          "Pass data of one dimension, for instance by flatten()");
  const Group replicas(graph, group, FUNCTION);
  const DebugContext name(debugContext, "reduceScatter");
  const auto whole = reduced(graph, replicas, data, op, prog, name);
  const std::size_t part = (data.numElements() + replicas.size() - 1) / replicas.size();
  return chosen(graph, replicas, whole, {part}, data.numElements(), part, prog, name);
}

Tensor allGatherCrossReplica(Graph &graph, const Tensor &data, Sequence &prog, const CommGroup &group,
                             const DebugContext &debugContext, const OptionFlags &options) {
  checkOptions("gcl::allGatherCrossReplica", options, collective_options);
  return gathered(graph, Group(graph, group, "gcl::allGatherCrossReplica"), data, prog, {debugContext, "allGather"});
}

Tensor allToAllCrossReplica(Graph &graph, const Tensor &data, Sequence &prog, const CommGroup &group,
                            const DebugContext &debugContext, const OptionFlags &options) {
  constexpr auto FUNCTION = "gcl::allToAllCrossReplica";
  checkOptions(FUNCTION, options, collective_options);
  const Group replicas(graph, group, FUNCTION);
  checkRows(replicas, data, FUNCTION);
  const DebugContext name(debugContext, "allToAll");
  const auto all = gathered(graph, replicas, data, prog, name);
  const std::size_t whole = data.numElements(), row = whole / replicas.size();
  return chosen(graph, replicas, all, data.shape(), whole, row, prog, name);
}

Tensor broadcastCrossReplica(Graph &graph, const Tensor &data, Sequence &prog, const CommGroup &group,
                             unsigned rootReplica, const DebugContext &debugContext, const OptionFlags &options) {
  constexpr auto FUNCTION = "gcl::broadcastCrossReplica";
  checkOptions(FUNCTION, options, collective_options);
  const Group replicas(graph, group, FUNCTION);
  if (rootReplica >= replicas.size())
    poputil::detail::fail(FUNCTION, "the root is " + std::to_string(rootReplica) + " of " +
                          std::to_string(replicas.size()) + " replicas", "Pass a lower number");
  return gathered(graph, replicas, data, prog, {debugContext, "broadcast"})[rootReplica];
}

Tensor allReduceCrossReplica(Graph &graph, const Tensor &data, CollectiveOperator op, Sequence &prog,
                             const DebugContext &debugContext, const OptionFlags &options) {
  return allReduceCrossReplica(graph, data, op, prog, CommGroup(), debugContext, options);
}

std::vector<Tensor> allReduceCrossReplica(Graph &graph, const std::vector<Tensor> &datas, CollectiveOperator op,
                                          Sequence &prog, const DebugContext &debugContext,
                                          const OptionFlags &options) {
  return allReduceCrossReplica(graph, datas, op, prog, CommGroup(), debugContext, options);
}

void allReduceToDestinationCrossReplica(Graph &graph, const Tensor &data, const Tensor &destination,
                                        CollectiveOperator op, Sequence &prog, const DebugContext &debugContext,
                                        const OptionFlags &options) {
  allReduceToDestinationCrossReplica(graph, data, destination, op, prog, CommGroup(), debugContext, options);
}

void allReduceInPlaceCrossReplica(Graph &graph, Tensor &data, CollectiveOperator op, Sequence &prog,
                                  const DebugContext &debugContext, const OptionFlags &options) {
  allReduceInPlaceCrossReplica(graph, data, op, prog, CommGroup(), debugContext, options);
}

Tensor reduceScatterCrossReplica(Graph &graph, const Tensor &data, CollectiveOperator op, Sequence &prog,
                                 const DebugContext &debugContext, const OptionFlags &options) {
  return reduceScatterCrossReplica(graph, data, op, prog, CommGroup(), debugContext, options);
}

Tensor allGatherCrossReplica(Graph &graph, const Tensor &data, Sequence &prog, const DebugContext &debugContext,
                             const OptionFlags &options) {
  return allGatherCrossReplica(graph, data, prog, CommGroup(), debugContext, options);
}

Tensor allToAllCrossReplica(Graph &graph, const Tensor &data, Sequence &prog, const DebugContext &debugContext,
                            const OptionFlags &options) {
  return allToAllCrossReplica(graph, data, prog, CommGroup(), debugContext, options);
}

Tensor broadcastCrossReplica(Graph &graph, const Tensor &data, Sequence &prog, const DebugContext &debugContext,
                             const OptionFlags &options) {
  return broadcastCrossReplica(graph, data, prog, CommGroup(), 0, debugContext, options);
}

Tensor allReduceWithinReplica(Graph &graph, const Tensor &data, CollectiveOperator op, Sequence &prog,
                              const DebugContext &debugContext, const OptionFlags &options) {
  constexpr auto FUNCTION = "gcl::allReduceWithinReplica";
  checkOptions(FUNCTION, options, collective_options);
  if (data.rank() == 0) poputil::detail::fail(FUNCTION, "the data is a scalar", "Pass a row for each IPU");
  const DebugContext name(debugContext, "allReduce");
  const auto out = graph.clone(data, {name, "out"});
  const auto rows = op == CollectiveOperator::LOCAL
                        ? data
                        : reducedRows(graph, data, op, prog, name).expand({0}).broadcast(data.dim(0), 0);
  prog.add(poplar::program::Copy(rows, out, false, {name, "toRows"}));
  return out;
}

}  // namespace gcl
