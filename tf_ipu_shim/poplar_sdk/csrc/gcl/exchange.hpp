// Exchange of tensors between the replicas of a group, from which collectives are built.
#ifndef tf_ipu_shim_gcl_exchange_hpp
#define tf_ipu_shim_gcl_exchange_hpp

#include <functional>
#include <gcl/Collectives.hpp>

#include "poputil/library.hpp"

namespace gcl::detail {

using namespace poputil::library;

// The replicas of a group and their places in it.
class Group {
 public:
  // `function` is named in errors.
  Group(const poplar::Graph &graph, const CommGroup &group, const char *function);
  unsigned size() const { return size_; }
  // The place of a replica in its group.
  unsigned placeOf(unsigned replica) const { return replica / distance_ % size_; }
  // The replicas that a value goes from and to, so that each gets it from the one `steps` places before.
  std::map<unsigned, unsigned> rotation(unsigned steps) const;

 private:
  unsigned replicas_, size_, distance_ = 1;
};

// The data of the group's replicas, in the order of their places, in a new first dimension.
Tensor gathered(poplar::Graph &graph, const Group &group, const Tensor &data, Sequence &prog,
                const poplar::DebugContext &debugContext);

// The chosen elements of a tensor: choose(place, i) is the index of element i of the result on the replica at a place.
Tensor chosen(poplar::Graph &graph, const Group &group, const Tensor &from, const Shape &shape, Sequence &prog,
              const poplar::DebugContext &debugContext, std::function<std::size_t(unsigned, std::size_t)> choose);

}  // namespace gcl::detail

#endif
