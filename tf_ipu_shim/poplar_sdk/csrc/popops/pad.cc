// Pads and regroups tensors, copies consecutive rows, and creates tensors for copies from and to the host.
#include <algorithm>
#include <cstring>
#include <limits>
#include <popops/HostSliceTensor.hpp>
#include <popops/Pad.hpp>
#include <popops/Rearrange.hpp>
#include <popops/SequenceSlice.hpp>
#include <poputil/detail/kernels.hpp>

namespace popops {

namespace {

using poplar::Tensor;
using poputil::detail::fail;
using Paddings = std::vector<std::ptrdiff_t>;

// Cuts off the elements that negative paddings remove.
Tensor cut(const Tensor &t, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dim) {
  const auto size = static_cast<std::ptrdiff_t>(t.dim(dim));
  const auto begin = std::max<std::ptrdiff_t>(-lower, 0), end = size - std::max<std::ptrdiff_t>(-upper, 0);
  if (begin > end)
    fail("popops::pad", "it cuts more than the " + std::to_string(size) + " elements of dimension " +
         std::to_string(dim), "Pass larger paddings");
  return t.slice(begin, end, dim);
}

void checkPaddings(const Tensor &t, const Paddings &lower, const Paddings &upper) {
  if (lower.size() != t.rank() || upper.size() != t.rank())
    fail("popops::pad", "the paddings have " + std::to_string(lower.size()) + " and " + std::to_string(upper.size()) +
         " elements; expected " + std::to_string(t.rank()), "Pass one for each dimension");
}

// Of one dimension. Larger ones make tensors that no system can store.
void checkSize(std::ptrdiff_t lower, std::ptrdiff_t upper) {
  constexpr std::ptrdiff_t most = std::numeric_limits<std::int32_t>::max();
  for (const auto padding : {lower, upper})
    if (padding > most || padding < -most)
      fail("popops::pad", "a padding is " + std::to_string(padding) + "; expected at most " + std::to_string(most),
           "Pass a smaller one");
}

template <class PadOne>
Tensor padEach(const Tensor &t, const Paddings &lower, const Paddings &upper, PadOne padOne) {
  checkPaddings(t, lower, upper);
  auto result = t;
  for (unsigned dim = 0; dim != t.rank(); ++dim) result = padOne(result, lower[dim], upper[dim], dim);
  return result;
}

// The scalar as often as the padding has elements.
Tensor repeatScalar(const Tensor &scalar, const Tensor &like, std::size_t size, unsigned dim) {
  auto shape = like.shape();
  shape[dim] = size;
  return scalar.flatten().broadcast(poputil::detail::product(shape), 0).reshape(shape);
}

template <class T>
Tensor constantOf(poplar::Graph &graph, const poplar::Type &type, T value, padding::MappingMethod method) {
  const auto constant = graph.addConstant(type, {}, value, "padding");
  if (method != padding::MappingMethod::NONE) graph.setTileMapping(constant, 0);
  return constant;
}

// Elements beyond one end of a dimension.
Tensor edge(const Tensor &t, std::size_t size, unsigned dim, padding::Type type, bool lower) {
  const auto length = t.dim(dim);
  if (type == padding::Type::EDGE) {
    if (length == 0) fail("popops::pad", "the dimension has no elements to repeat", "Pad a dimension with elements");
    const auto index = lower ? 0 : length - 1;
    return t.slice(index, index + 1, dim).broadcast(size, dim);
  }
  if (size >= length)
    fail("popops::pad", "it mirrors " + std::to_string(size) + " elements of a dimension of " +
         std::to_string(length), "Pass a padding smaller than the dimension");
  return (lower ? t.slice(1, size + 1, dim) : t.slice(length - 1 - size, length - 1, dim)).reverse(dim);
}

}  // namespace

Tensor pad(poplar::Graph &, const Tensor &t, std::ptrdiff_t paddingLower, std::ptrdiff_t paddingUpper, unsigned dim,
           const Tensor &val, padding::MappingMethod) {
  if (dim >= t.rank()) fail("popops::pad", "dimension " + std::to_string(dim) + " is padded of a tensor of rank " +
                            std::to_string(t.rank()), "Pass a dimension of the tensor");
  if (val.numElements() != 1 || val.elementType() != t.elementType())
    fail("popops::pad", "the value is not a scalar of type " + poputil::detail::typeName(t.elementType()),
         "Cast or reshape it");
  checkSize(paddingLower, paddingUpper);
  std::vector<Tensor> parts{cut(t, paddingLower, paddingUpper, dim)};
  if (paddingLower > 0) parts.insert(parts.begin(), repeatScalar(val, t, paddingLower, dim));
  if (paddingUpper > 0) parts.push_back(repeatScalar(val, t, paddingUpper, dim));
  return poplar::concat(parts, dim);
}

Tensor pad(poplar::Graph &graph, const Tensor &t, std::ptrdiff_t paddingLower, std::ptrdiff_t paddingUpper,
           unsigned dim, float val, padding::MappingMethod mappingMethod) {
  return pad(graph, t, paddingLower, paddingUpper, dim, constantOf(graph, t.elementType(), val, mappingMethod),
             mappingMethod);
}

Tensor pad(poplar::Graph &graph, const Tensor &t, std::ptrdiff_t paddingLower, std::ptrdiff_t paddingUpper,
           unsigned dim, int val, padding::MappingMethod mappingMethod) {
  return pad(graph, t, paddingLower, paddingUpper, dim, constantOf(graph, t.elementType(), val, mappingMethod),
             mappingMethod);
}

Tensor pad(poplar::Graph &graph, const Tensor &t, const Paddings &paddingLower, const Paddings &paddingUpper,
           const Tensor &val, padding::MappingMethod mappingMethod) {
  return padEach(t, paddingLower, paddingUpper,
                 [&](const Tensor &tensor, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dim) {
                   return pad(graph, tensor, lower, upper, dim, val, mappingMethod);
                 });
}

Tensor pad(poplar::Graph &graph, const Tensor &t, const Paddings &paddingLower, const Paddings &paddingUpper, float val,
           padding::MappingMethod mappingMethod) {
  return pad(graph, t, paddingLower, paddingUpper, constantOf(graph, t.elementType(), val, mappingMethod),
             mappingMethod);
}

Tensor pad(poplar::Graph &graph, const Tensor &t, const Paddings &paddingLower, const Paddings &paddingUpper, int val,
           padding::MappingMethod mappingMethod) {
  return pad(graph, t, paddingLower, paddingUpper, constantOf(graph, t.elementType(), val, mappingMethod),
             mappingMethod);
}

Tensor pad(const Tensor &t, std::ptrdiff_t paddingLower, std::ptrdiff_t paddingUpper, unsigned dim,
           padding::Type type) {
  if (dim >= t.rank()) fail("popops::pad", "dimension " + std::to_string(dim) + " is padded of a tensor of rank " +
                            std::to_string(t.rank()), "Pass a dimension of the tensor");
  checkSize(paddingLower, paddingUpper);
  std::vector<Tensor> parts{cut(t, paddingLower, paddingUpper, dim)};
  if (paddingLower > 0) parts.insert(parts.begin(), edge(t, paddingLower, dim, type, true));
  if (paddingUpper > 0) parts.push_back(edge(t, paddingUpper, dim, type, false));
  return poplar::concat(parts, dim);
}

Tensor pad(const Tensor &t, const Paddings &paddingLower, const Paddings &paddingUpper, padding::Type type) {
  return padEach(t, paddingLower, paddingUpper,
                 [&](const Tensor &tensor, std::ptrdiff_t lower, std::ptrdiff_t upper, unsigned dim) {
                   return pad(tensor, lower, upper, dim, type);
                 });
}

void sequenceSlice(poplar::Graph &graph, const Tensor &tIn, const Tensor &tOut, const Tensor &tN,
                   const Tensor &tInOffset, const Tensor &tOutOffset, bool zeroUnused, poplar::program::Sequence &prog,
                   const poplar::DebugContext &debugContext) {
  const auto count = tN.numElements();
  if (tIn.rank() == 0 || tOut.rank() == 0 || tIn.numElements() / std::max<std::size_t>(tIn.dim(0), 1) !=
      tOut.numElements() / std::max<std::size_t>(tOut.dim(0), 1) || tIn.elementType() != tOut.elementType())
    fail("popops::sequenceSlice", "rows of the input and the output differ in size or type", "Pass alike rows");
  for (const Tensor &tensor : {tN, tInOffset, tOutOffset})
    if (tensor.elementType() != poplar::UNSIGNED_INT && tensor.elementType() != poplar::INT)
      fail("popops::sequenceSlice", "tN, tInOffset or tOutOffset has the type " +
           poputil::detail::typeName(tensor.elementType()) + "; expected unsigned int", "Cast it");
  if (tInOffset.numElements() != count || tOutOffset.numElements() != count)
    fail("popops::sequenceSlice", "tN, tInOffset and tOutOffset differ in size", "Pass an element for each slice");
  const auto rows_in = tIn.dim(0), rows_out = tOut.dim(0);
  const auto bytes = tIn.numElements() / std::max<std::size_t>(rows_in, 1) * poplar::detail::typeSize(tIn.elementType());
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "sequenceSlice"}, {tIn, tN, tInOffset, tOutOffset}, {tOut},
      poputil::detail::Kernel::of([](const poputil::detail::KernelArguments &arguments, const auto &count,
                                     const auto &rows_in, const auto &rows_out, const auto &bytes,
                                     const auto &zeroUnused) {
        const auto *from = static_cast<const char *>(arguments.inputs[0]);
        const auto value = [&](std::size_t input, std::size_t i) -> std::size_t {
          return static_cast<const std::uint32_t *>(arguments.inputs[input])[i];
        };
        auto *to = static_cast<char *>(arguments.outputs[0]);
        if (zeroUnused) std::memset(to, 0, rows_out * bytes);
        for (std::size_t i = 0; i != count; ++i) {
          const auto in = std::min<std::size_t>(value(2, i), rows_in), out = std::min<std::size_t>(value(3, i), rows_out);
          const auto rows = std::min({value(1, i), rows_in - in, rows_out - out});
          if (rows != 0) std::memcpy(to + out * bytes, from + in * bytes, rows * bytes);
        }
      }, count, rows_in, rows_out, bytes, zeroUnused));
}

namespace rearrange {

unsigned getMinimumRegroupGrainSize(const poplar::Type &type) { return type == poplar::HALF ? 4 : 2; }

Tensor regroupIfBeneficial(poplar::Graph &graph, const Tensor &in, const Tensor &ref, poplar::program::Sequence &,
                           const poplar::DebugContext &) {
  for (const Tensor &tensor : {in, ref}) graph.getTileMapping(tensor, false);  // throws if it is not of the graph
  return in;
}

Tensor regroupIfBeneficial(poplar::Graph &graph, const Tensor &in, std::size_t, poplar::program::Sequence &,
                           const poplar::DebugContext &) {
  graph.getTileMapping(in, false);
  return in;
}

Tensor regroupIfPossible(poplar::Graph &graph, const Tensor &t, poplar::program::Sequence &prog,
                         const poputil::GroupingInfo &to, const poplar::DebugContext &debugContext) {
  if (to.first >= t.rank() || to.second == 0 || t.dim(to.first) % to.second != 0) return t;
  auto parts = std::vector<std::size_t>(t.rank(), 1);
  for (unsigned dim = 0; dim != t.rank(); ++dim) parts[dim] = dim == to.first ? t.dim(dim) / to.second : t.dim(dim);
  const auto out = poputil::createPartitionableTensor(graph, t.elementType(), t.shape(), parts, debugContext);
  poputil::mapTensorLinearly(graph, out);
  prog.add(poplar::program::Copy(t, out, false, debugContext));
  return out;
}

}  // namespace rearrange

IndicesAndTensor createHostSliceableTensor(poplar::Graph &graph, const poplar::Type &type,
                                           const std::vector<size_t> &shape, const bool isRead,
                                           const poplar::DebugContext &debugContext) {
  return createHostSliceableTensor(graph, type, shape, isRead, 0, debugContext);
}

IndicesAndTensor createHostSliceableTensor(poplar::Graph &graph, const poplar::Type &type,
                                           const std::vector<size_t> &shape, const bool isRead, const size_t offset,
                                           const poplar::DebugContext &debugContext) {
  if (shape.size() != 2)
    fail("popops::createHostSliceableTensor", "the shape has " + std::to_string(shape.size()) +
         " dimensions; expected 2", "Pass the shape of a matrix");
  const auto tensor = createHostTransferableTensor(graph, type, shape, isRead, offset, debugContext);
  const auto indices = createHostTransferableTensor(graph, poplar::UNSIGNED_INT, {shape[0]}, isRead, offset,
                                                    {debugContext, "indices"});
  return {indices, tensor};
}

Tensor createHostTransferableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<size_t> &shape,
                                    bool isRead, const poplar::DebugContext &debugContext) {
  return createHostTransferableTensor(graph, type, shape, isRead, 0, debugContext);
}

Tensor createHostTransferableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<size_t> &shape,
                                    bool, const size_t offset, const poplar::DebugContext &debugContext) {
  const auto tensor = graph.addVariable(type, shape, debugContext);
  poputil::mapTensorLinearlyWithOffset(graph, tensor, offset);
  return tensor;
}

}  // namespace popops
