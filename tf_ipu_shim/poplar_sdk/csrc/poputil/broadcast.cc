// Broadcasts views of tensors by NumPy's rules.
#include <algorithm>
#include <poputil/Broadcast.hpp>
#include <poputil/detail/elements.hpp>

namespace poputil {

namespace {

using Shape = std::vector<std::size_t>;

// The tensor with leading dimensions of size 1 up to the rank.
poplar::Tensor expandToRank(const poplar::Tensor &tensor, std::size_t rank) {
  Shape shape = tensor.shape();
  shape.insert(shape.begin(), rank - shape.size(), 1);
  return tensor.reshape(shape);
}

// Widens `shape` to its common broadcast with `other`; false if there is none.
bool widen(Shape &shape, Shape other) {
  const auto rank = std::max(shape.size(), other.size());
  shape.insert(shape.begin(), rank - shape.size(), 1);
  other.insert(other.begin(), rank - other.size(), 1);
  for (std::size_t dim = 0; dim != rank; ++dim) {
    if (shape[dim] == 1) shape[dim] = other[dim];
    if (other[dim] != 1 && other[dim] != shape[dim]) return false;
  }
  return true;
}

[[noreturn]] void failToBroadcast(const Shape &from, const Shape &to) {
  detail::fail("broadcastToMatch",
               "the shape " + detail::describeShape(from) + " does not broadcast to " + detail::describeShape(to),
               "Make each dimension equal to the other's, or 1");
}

}  // namespace

void expandToMatchRanks(poplar::Tensor &a, poplar::Tensor &b) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  a = expandToRank(a, rank);
  b = expandToRank(b, rank);
}

void broadcastToMatch(poplar::Tensor &a, const std::vector<std::size_t> &shape) {
  if (a.rank() > shape.size()) failToBroadcast(a.shape(), shape);
  auto result = expandToRank(a, shape.size());
  for (unsigned dim = 0; dim != shape.size(); ++dim) {
    if (result.dim(dim) == shape[dim]) continue;
    if (result.dim(dim) != 1) failToBroadcast(a.shape(), shape);
    result = result.broadcast(shape[dim], dim);
  }
  a = result;
}

void broadcastToMatch(poplar::Tensor &a, poplar::Tensor &b) {
  auto shape = a.shape();
  if (!widen(shape, b.shape())) failToBroadcast(a.shape(), b.shape());
  broadcastToMatch(a, shape);
  broadcastToMatch(b, shape);
}

void broadcastToMatch(poplar::Tensor &a, poplar::Tensor &b, poplar::Tensor &c) {
  auto shape = a.shape();
  if (!widen(shape, b.shape())) failToBroadcast(a.shape(), b.shape());
  if (!widen(shape, c.shape())) failToBroadcast(c.shape(), shape);
  broadcastToMatch(a, shape);
  broadcastToMatch(b, shape);
  broadcastToMatch(c, shape);
}

bool canBroadcastToMatch(const poplar::Tensor &a, const poplar::Tensor &b) {
  auto shape = a.shape();
  return widen(shape, b.shape());
}

}  // namespace poputil
