// Gathers and selects tensors across a group of replicas, by copies between replicas.
#include "gcl/exchange.hpp"

#include <cstring>

#include "poplar/graph/state.hpp"

namespace gcl::detail {

namespace {

using poplar::program::CrossReplicaCopy;

// Adds a kernel whose last input is the number of its replica.
void addPlacedKernel(poplar::Graph &graph, std::vector<Tensor> inputs, const Tensor &out, Sequence &prog,
                     const poplar::DebugContext &debugContext, Kernel kernel) {
  const auto replica = graph.addReplicationIndexConstant({debugContext, "replica"});
  graph.setTileMapping(replica, 0);
  inputs.push_back(replica.reshape({}));
  poputil::detail::addKernelIfAny(graph, prog, debugContext, inputs, {out}, std::move(kernel));
}

unsigned placeOf(const Group &group, const KernelArguments &arguments) {
  unsigned index = 0;
  std::memcpy(&index, arguments.inputs.back(), sizeof index);
  return group.placeOf(index);
}

std::size_t bytesOf(const poplar::Graph &graph, const Tensor &tensor) {
  return graph.getTarget().getTypeSize(tensor.elementType());
}

}  // namespace

Group::Group(const poplar::Graph &graph, const CommGroup &group, const char *function)
    : replicas_(graph.getReplicationFactor()), size_(replicas_) {
  if (graph.state().of_tensorflow_op)
    poputil::detail::fail(function, "a custom op of a TensorFlow program does not see other replicas",
                          "Use tensorflow.python.ipu.ops.cross_replica_ops on the op's inputs or outputs");
  if (group.type == CommGroupType::ALL) return;
  if (group.replicaGroupSize != 0) size_ = group.replicaGroupSize;
  if (replicas_ % size_ != 0)
    poputil::detail::fail(function, "the group has " + std::to_string(size_) + " of " + std::to_string(replicas_) +
                          " replicas; expected a divisor", "Pass another replicaGroupSize");
  if (group.type == CommGroupType::ORTHOGONAL) distance_ = replicas_ / size_;
}

std::map<unsigned, unsigned> Group::rotation(unsigned steps) const {
  std::map<unsigned, unsigned> map;
  for (unsigned replica = 0; replica != replicas_; ++replica) {
    const unsigned place = placeOf(replica), first = replica - place * distance_;
    map[replica] = first + (place + steps) % size_ * distance_;
  }
  return map;
}

Tensor gathered(poplar::Graph &graph, const Group &group, const Tensor &data, Sequence &prog,
                const poplar::DebugContext &debugContext) {
  std::vector<Tensor> received{data};
  for (unsigned steps = 1; steps != group.size(); ++steps) {
    received.push_back(graph.clone(data, {debugContext, "received"}));
    prog.add(CrossReplicaCopy(data, received.back(), group.rotation(steps), {debugContext, "exchange"}));
  }
  Shape shape = data.shape();
  shape.insert(shape.begin(), group.size());
  const auto out = poputil::detail::createLinear(graph, data.elementType(), shape, {debugContext, "gathered"});
  const std::size_t bytes = data.numElements() * bytesOf(graph, data);
  addPlacedKernel(graph, received, out, prog, {debugContext, "gather"},
                  Kernel::of([](const KernelArguments &arguments, const Group &group, const std::size_t &bytes) {
                    const unsigned place = placeOf(group, arguments);
                    char *to = static_cast<char *>(arguments.outputs[0]);
                    for (unsigned steps = 0; steps != group.size(); ++steps)
                      std::memcpy(to + (place + group.size() - steps) % group.size() * bytes, arguments.inputs[steps],
                                  bytes);
                  }, group, bytes));
  return out;
}

Tensor chosen(poplar::Graph &graph, const Group &group, const Tensor &from, const Shape &shape, std::size_t whole,
              std::size_t part, Sequence &prog, const poplar::DebugContext &debugContext) {
  const auto out = poputil::detail::createLinear(graph, from.elementType(), shape, {debugContext, "out"});
  const std::size_t bytes = bytesOf(graph, from), count = out.numElements(), all = from.numElements();
  addPlacedKernel(graph, {from}, out, prog, {debugContext, "choose"},
                  Kernel::of([](const KernelArguments &arguments, const auto &group, const auto &bytes,
                                const auto &count, const auto &all, const auto &whole, const auto &part) {
                    const unsigned place = placeOf(group, arguments);
                    const char *data = static_cast<const char *>(arguments.inputs[0]);
                    char *to = static_cast<char *>(arguments.outputs[0]);
                    for (std::size_t i = 0; i != count; ++i) {
                      const std::size_t index = i / part * whole + place * part + i % part;
                      if (index < all) std::memcpy(to + i * bytes, data + index * bytes, bytes);
                      else std::memset(to + i * bytes, 0, bytes);
                    }
                  }, group, bytes, count, all, whole, part));
  return out;
}

}  // namespace gcl::detail
