// Exchanges tensors between the replicas of a group: the copies from which collectives are built.
#ifndef tf_ipu_shim_gcl_exchange_hpp
#define tf_ipu_shim_gcl_exchange_hpp

#include <gcl/Collectives.hpp>

#include "poputil/library.hpp"

namespace gcl::detail {

using namespace poputil::library;

// The replicas of a group and their places in it.
class Group {
 public:
  Group() = default;
  // `function` is named in errors.
  Group(const poplar::Graph &graph, const CommGroup &group, const char *function);
  unsigned size() const { return size_; }
  // The place of a replica in its group.
  unsigned placeOf(unsigned replica) const { return replica / distance_ % size_; }
  // The replicas that a value goes from and to, so that each gets it from the one `steps` places before.
  std::map<unsigned, unsigned> rotation(unsigned steps) const;

 private:
  unsigned replicas_ = 1, size_ = 1, distance_ = 1;
};

// The data of the group's replicas, in the order of their places, in a new first dimension.
Tensor gathered(poplar::Graph &graph, const Group &group, const Tensor &data, Sequence &prog,
                const poplar::DebugContext &debugContext);

// Parts of rows of `whole` elements: on the replica at a place, the `part` elements of each row from place * part on.
Tensor chosen(poplar::Graph &graph, const Group &group, const Tensor &from, const Shape &shape, std::size_t whole,
              std::size_t part, Sequence &prog, const poplar::DebugContext &debugContext);

}  // namespace gcl::detail

#endif
