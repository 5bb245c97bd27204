// Broadcasts tensors against each other by NumPy's rules.
#ifndef poputil_Broadcast_hpp
#define poputil_Broadcast_hpp

#include <poplar/Tensor.hpp>
#include <vector>

namespace poputil {

// Gives both tensors the rank of the larger one: new dimensions of size 1 come first.
void expandToMatchRanks(poplar::Tensor &a, poplar::Tensor &b);

// Replaces `a` by its broadcast to `shape`. Throws poplibs_error if it has none.
void broadcastToMatch(poplar::Tensor &a, const std::vector<std::size_t> &shape);

// Replaces the tensors by their broadcasts to the shape that they have in common.
void broadcastToMatch(poplar::Tensor &a, poplar::Tensor &b);
void broadcastToMatch(poplar::Tensor &a, poplar::Tensor &b, poplar::Tensor &c);

// Whether the shapes have a common broadcast.
bool canBroadcastToMatch(const poplar::Tensor &a, const poplar::Tensor &b);

}  // namespace poputil

#endif
