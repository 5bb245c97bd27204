// Copies, splits and reshapes tensors, and checks casts of values.
#include <cmath>
#include <numeric>
#include <poputil/Util.hpp>
#include <poputil/detail/elements.hpp>

namespace poputil {

poplar::Tensor duplicate(poplar::Graph &graph, const poplar::Tensor &in, poplar::program::Sequence &p,
                         const poplar::DebugContext &debugContext, poplar::TensorCloneMethod method) {
  const auto out = graph.clone(in, debugContext, method);
  p.add(poplar::program::Copy(in, out, false, debugContext));
  return out;
}

poplar::Tensor cloneN(poplar::Graph &graph, const poplar::Tensor &t, unsigned N,
                      const poplar::DebugContext &debugContext, poplar::TensorCloneMethod method) {
  std::vector<poplar::Tensor> clones;
  for (unsigned i = 0; i != N; ++i) clones.push_back(graph.clone(t, debugContext, method).expand({0}));
  return poplar::concat(clones);
}

std::vector<int> balancedPartition(int rangeUpperBound, int splitCount) {
  std::vector<int> sizes(splitCount, rangeUpperBound / splitCount);
  for (int i = 0; i != rangeUpperBound % splitCount; ++i) ++sizes[i];
  return sizes;
}

double castToDeviceHalfValue(const poplar::Target &, double input) {
  return detail::roundToHalf(static_cast<float>(input));
}

bool checkAccuracyWhenCast(const poplar::Target &target, double input, poplar::Type inputType, poplar::Type outputType,
                           double tolerance) {
  if (!detail::isFloating(inputType) || !detail::isFloating(outputType))
    detail::fail("checkAccuracyWhenCast", "a type is neither float nor half", "Pass FLOAT or HALF");
  if (inputType == outputType || outputType == poplar::FLOAT) return true;
  const double rounded = castToDeviceHalfValue(target, input);
  return std::abs(rounded - input) <= tolerance * std::abs(input);
}

poplar::Tensor factorDims(const poplar::Tensor &t, const std::vector<std::size_t> &factors, unsigned startDim) {
  const auto shape = t.shape();
  if (startDim > shape.size() || factors.size() > shape.size() - startDim)
    detail::fail("factorDims", "the shape " + detail::describeShape(shape) + " has fewer than " +
                 std::to_string(factors.size()) + " dimensions from dimension " + std::to_string(startDim) + " on",
                 "Pass fewer factors or a lower dimension");
  std::vector<std::size_t> split(shape.begin(), shape.begin() + startDim);
  for (std::size_t i = 0; i != factors.size(); ++i) {
    if (factors[i] == 0 || shape[startDim + i] % factors[i] != 0)
      detail::fail("factorDims", "dimension " + std::to_string(startDim + i) + " of the shape " +
                   detail::describeShape(shape) + " has no factor " + std::to_string(factors[i]),
                   "Pass factors of the dimensions");
    split.push_back(shape[startDim + i] / factors[i]);
    split.push_back(factors[i]);
  }
  split.insert(split.end(), shape.begin() + startDim + factors.size(), shape.end());
  std::vector<unsigned> order(split.size());
  std::iota(order.begin(), order.end(), 0);
  for (unsigned i = 0; i != factors.size(); ++i) {
    order[startDim + i] = startDim + 2 * i;
    order[startDim + factors.size() + i] = startDim + 2 * i + 1;
  }
  return t.reshape(split).dimShuffle(order);
}

poplar::Tensor unfactorDims(const poplar::Tensor &t, unsigned numDims, unsigned startDim) {
  const auto shape = t.shape();
  if (startDim > shape.size() || numDims > (shape.size() - startDim) / 2)
    detail::fail("unfactorDims", "the shape " + detail::describeShape(shape) + " has too few dimensions",
                 "Pass the result of factorDims()");
  std::vector<unsigned> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::size_t> joined(shape.begin(), shape.begin() + startDim);
  for (unsigned i = 0; i != numDims; ++i) {
    order[startDim + 2 * i] = startDim + i;
    order[startDim + 2 * i + 1] = startDim + numDims + i;
    joined.push_back(shape[startDim + i] * shape[startDim + numDims + i]);
  }
  joined.insert(joined.end(), shape.begin() + startDim + 2 * numDims, shape.end());
  return t.dimShuffle(order).reshape(joined);
}

}  // namespace poputil
