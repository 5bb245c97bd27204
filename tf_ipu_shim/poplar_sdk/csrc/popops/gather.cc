// Gathers slices along an axis, and gathers and scatters windows with XLA's semantics.
#include <cstring>
#include <popops/DynamicSlice.hpp>
#include <popops/Gather.hpp>
#include <popops/Loop.hpp>
#include <popops/Scatter.hpp>

#include "poputil/library.hpp"

namespace popops {

using namespace poputil::library;

namespace {

template <class T>
bool contains(const std::vector<T> &values, std::size_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Windows of an operand, each at a start that an index vector gives.
struct Windows {
  Shape operand, window;                // the operand's shape and the windows', dimension by dimension
  std::vector<unsigned> startMap;       // the operand's dimension of each element of an index vector
  std::size_t count = 1, indexStride = 1, indexSize = 1;
  bool clamped = true;                  // whether a window outside is moved into the operand, or left out
  bool remap = false, padded = false;   // whether an index outside is 0, and the one after the last is left out

  std::size_t elements() const { return poputil::detail::product(window); }

  // The start of window `number`; false if it is left out.
  bool start(const std::int32_t *indices, std::size_t number, Shape &start) const {
    std::fill(start.begin(), start.end(), 0);
    const auto *first = indices + number / indexStride * indexStride * indexSize + number % indexStride;
    for (std::size_t i = 0; i != startMap.size(); ++i) {
      const auto dim = startMap[i];
      std::int64_t index = first[i * indexStride];
      const auto size = static_cast<std::int64_t>(operand[dim]), last = size - static_cast<std::int64_t>(window[dim]);
      if (padded && index == size) return false;
      if (remap && (index < 0 || index > last)) index = 0;
      if (!clamped && (index < 0 || index > last)) return false;
      start[dim] = static_cast<std::size_t>(std::clamp<std::int64_t>(index, 0, last));
    }
    return true;
  }

  void setOptions(const std::string &function, const OptionFlags &options) {
    checkOptions(function.c_str(), options, slice_options);
    remap = isSet(options, "remapOutOfBoundIndices");
    padded = isSet(options, "paddingIndexUsed");
  }

  // Calls `visit` with the offset in the operand of each element of a window, in row-major order.
  template <class Visit>
  void forEachElement(const Shape &start, Visit visit) const {
    Shape at(window.size());
    for (std::size_t i = 0, all = elements(); i != all; ++i) {
      std::size_t offset = 0;
      for (std::size_t dim = 0; dim != window.size(); ++dim) offset = offset * operand[dim] + start[dim] + at[dim];
      visit(i, offset);
      for (std::size_t dim = window.size(); dim-- > 0;) {
        if (++at[dim] != window[dim]) break;
        at[dim] = 0;
      }
    }
  }
};

POPLAR_FIELDS(Windows, part.operand, part.window, part.startMap, part.count, part.indexStride, part.indexSize,
              part.clamped, part.remap, part.padded)

void checkDimension(const std::string &function, std::size_t dim, std::size_t rank) {
  if (dim >= rank)
    fail(function, "dimension " + std::to_string(dim) + " is not one of a tensor of rank " + std::to_string(rank),
         "Pass a lower one");
}

// Whether no dimension is named twice; each must be lower than the rank.
void checkDimensions(const std::string &function, const char *name, const std::vector<std::size_t> &dims,
                     std::size_t rank) {
  for (std::size_t i = 0; i != dims.size(); ++i) {
    checkDimension(function, dims[i], rank);
    if (std::count(dims.begin(), dims.end(), dims[i]) > 1)
      fail(function, std::string(name) + " has dimension " + std::to_string(dims[i]) + " twice", "Pass it once");
  }
}

// The shape of the indices without the dimension of the index vectors. The windows have operand, window and startMap.
Shape batchShape(const std::string &function, const Tensor &indices, std::size_t indexVectorDim, Windows &windows) {
  auto shape = indices.shape();
  if (indices.elementType() != poplar::INT && indices.elementType() != poplar::UNSIGNED_INT)
    fail(function, "the indices have the type " + poputil::detail::typeName(indices.elementType()) + "; expected int",
         "Cast them");
  if (indexVectorDim > shape.size()) fail(function, "indexVectorDim is larger than the rank", "Pass a dimension");
  for (std::size_t dim = indexVectorDim + 1; dim < shape.size(); ++dim) windows.indexStride *= shape[dim];
  if (indexVectorDim < shape.size()) {
    windows.indexSize = shape[indexVectorDim];
    shape.erase(shape.begin() + indexVectorDim);
  }
  checkDimensions(function, "the map of the index vectors", {windows.startMap.begin(), windows.startMap.end()},
                  windows.operand.size());
  for (std::size_t dim = 0; dim != windows.window.size(); ++dim)
    if (windows.window[dim] > windows.operand[dim])
      fail(function, "a window has " + std::to_string(windows.window[dim]) + " elements in dimension " +
           std::to_string(dim) + "; expected at most " + std::to_string(windows.operand[dim]), "Pass a smaller window");
  if (windows.indexSize != windows.startMap.size())
    fail(function, "the index vectors have " + std::to_string(windows.indexSize) + " elements; expected " +
         std::to_string(windows.startMap.size()), "Map each element to a dimension");
  windows.count = poputil::detail::product(shape);
  return shape;
}

// The update's view with a dimension of windows first: {windows, the window's elements}.
Tensor updatesByWindow(const Tensor &updates, const std::vector<unsigned> &updateWindowDims, std::size_t windows) {
  std::vector<unsigned> order;
  for (unsigned dim = 0; dim != updates.rank(); ++dim)
    if (!contains(updateWindowDims, dim)) order.push_back(dim);
  order.insert(order.end(), updateWindowDims.begin(), updateWindowDims.end());
  const auto elements = updates.numElements() / std::max<std::size_t>(windows, 1);
  return updates.dimShuffle(order).reshape({windows, elements});
}

Windows scatterWindows(const Tensor &operand, const Tensor &indices, const Tensor &updates, std::size_t indexVectorDim,
                       const std::vector<unsigned> &updateWindowDims, const Shape &insertWindowDims,
                       const std::vector<unsigned> &scatterDimsToOperandDims, const OptionFlags &options) {
  if (operand.elementType() != updates.elementType())
    fail("popops::scatter", "the operand has the type " + poputil::detail::typeName(operand.elementType()) +
         " and the updates " + poputil::detail::typeName(updates.elementType()) + "; expected the same",
         "Cast one of them");
  Windows windows;
  windows.operand = operand.shape();
  windows.startMap = scatterDimsToOperandDims;
  windows.clamped = false;
  windows.setOptions("popops::scatter", options);
  checkDimensions("popops::scatter", "insertWindowDims", insertWindowDims, operand.rank());
  checkDimensions("popops::scatter", "updateWindowDims", {updateWindowDims.begin(), updateWindowDims.end()},
                  updates.rank());
  if (insertWindowDims.size() + updateWindowDims.size() != operand.rank())
    fail("popops::scatter", "insertWindowDims and updateWindowDims have " + std::to_string(insertWindowDims.size()) +
         " and " + std::to_string(updateWindowDims.size()) + " dimensions; expected together the operand's " +
         std::to_string(operand.rank()), "Name each dimension of the operand in one of them");
  std::size_t next = 0;
  for (std::size_t dim = 0; dim != operand.rank(); ++dim)
    windows.window.push_back(contains(insertWindowDims, dim) ? 1 : updates.dim(updateWindowDims[next++]));
  const auto batch = batchShape("popops::scatter", indices, indexVectorDim, windows);
  Shape expected = batch;
  for (unsigned dim = 0; dim != updates.rank(); ++dim)
    if (contains(updateWindowDims, dim)) expected.insert(expected.begin() + std::min<std::size_t>(dim, expected.size()), updates.dim(dim));
  if (updates.shape() != expected)
    fail("popops::scatter", "the updates have the shape " + poputil::detail::describeShape(updates.shape()) +
         "; expected " + poputil::detail::describeShape(expected), "Pass an update for each index vector");
  return windows;
}

}  // namespace

Tensor createGatherInput(poplar::Graph &graph, const poplar::Type &type, const Shape &operandShape, unsigned,
                         GatherParams, const poplar::DebugContext &debugContext) {
  return poputil::detail::createLinear(graph, type, operandShape, debugContext);
}

Tensor createGatherInput(poplar::Graph &graph, const poplar::Type &type, const Shape &inputShape, const Shape &,
                         std::vector<unsigned>, const poplar::DebugContext &debugContext) {
  return poputil::detail::createLinear(graph, type, inputShape, debugContext);
}

Tensor gather(poplar::Graph &graph, const Tensor &input, const Tensor &indices, unsigned axis,
              Sequence &prog, GatherParams, const poplar::DebugContext &debugContext,
              const OptionFlags &optionFlags) {
  checkOptions("popops::gather", optionFlags, slice_options);
  if (axis >= input.rank())
    fail("popops::gather", "the axis is " + std::to_string(axis) + " for a tensor of rank " +
         std::to_string(input.rank()), "Pass a dimension of the tensor");
  const auto slices = multiSlice(graph, input, indices.flatten().expand({1}), {axis}, {1}, prog, {}, optionFlags,
                                 {debugContext, "gather"});
  // {indices, ..., 1 at the axis, ...}: the indices go to the axis.
  auto shape = input.shape();
  const auto index_shape = indices.shape();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, index_shape.begin(), index_shape.end());
  return slices.squeeze({axis + 1}).dimRoll(0, axis).reshape(shape);
}

Tensor gather(poplar::Graph &graph, const Tensor &input, const Tensor &indices, std::size_t indexVectorDim,
              const Shape &offsetDims, const Shape &sliceSizes, const Shape &collapsedSliceDims,
              const std::vector<unsigned> &startIndexMap, Sequence &prog,
              const poplar::DebugContext &debugContext, const OptionFlags &options) {
  Windows windows;
  windows.operand = input.shape();
  windows.window = sliceSizes;
  windows.startMap = startIndexMap;
  windows.setOptions("popops::gather", options);
  if (sliceSizes.size() != input.rank())
    fail("popops::gather", "sliceSizes has " + std::to_string(sliceSizes.size()) + " elements; expected " +
         std::to_string(input.rank()), "Pass a size for each dimension");
  const auto batch = batchShape("popops::gather", indices, indexVectorDim, windows);
  checkDimensions("popops::gather", "collapsedSliceDims", collapsedSliceDims, input.rank());
  for (const std::size_t dim : collapsedSliceDims)
    if (sliceSizes[dim] > 1)
      fail("popops::gather", "dimension " + std::to_string(dim) + " of the slices has " + std::to_string(sliceSizes[dim]) +
           " elements and is in collapsedSliceDims; expected 1", "Leave it out there");
  Shape kept;
  for (std::size_t dim = 0; dim != sliceSizes.size(); ++dim)
    if (!contains(collapsedSliceDims, dim)) kept.push_back(sliceSizes[dim]);
  // The result is computed as {batch, kept}; its view has the kept dimensions at offsetDims.
  auto shape = batch;
  shape.insert(shape.end(), kept.begin(), kept.end());
  const auto out = poputil::detail::createLinear(graph, input.elementType(), shape, {debugContext, "gather"});
  const auto type = input.elementType();
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "gather"}, {input, indices}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &windows, const auto &type) {
        poputil::detail::visitSize(type, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const auto *from = static_cast<const T *>(arguments.inputs[0]);
          auto *to = static_cast<T *>(arguments.outputs[0]);
          Shape start(windows.operand.size());
          for (std::size_t i = 0; i != windows.count; ++i, to += windows.elements()) {
            if (windows.start(static_cast<const std::int32_t *>(arguments.inputs[1]), i, start))
              windows.forEachElement(start, [&](std::size_t k, std::size_t offset) { to[k] = from[offset]; });
            else std::fill_n(to, windows.elements(), T(0));
          }
        });
      }, windows, type));
  checkDimensions("popops::gather", "offsetDims", offsetDims, shape.size());
  if (offsetDims.size() != kept.size())
    fail("popops::gather", "offsetDims has " + std::to_string(offsetDims.size()) + " elements; expected " +
         std::to_string(kept.size()), "Pass the result's dimension of each one of a slice that is not collapsed");
  std::vector<unsigned> order(shape.size());
  unsigned next_batch = 0, next_kept = static_cast<unsigned>(batch.size());
  for (unsigned dim = 0; dim != order.size(); ++dim) order[dim] = contains(offsetDims, dim) ? next_kept++ : next_batch++;
  return out.dimShuffle(order);
}

void scatter(poplar::Graph &graph, const Tensor &operand, const Tensor &indices, const Tensor &updates,
             std::size_t indexVectorDim, std::vector<unsigned> updateWindowDims, Shape insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims, Sequence &prog,
             const poplar::DebugContext &debugContext, const OptionFlags &options) {
  const auto windows = scatterWindows(operand, indices, updates, indexVectorDim, updateWindowDims, insertWindowDims,
                                      scatterDimsToOperandDims, options);
  const auto type = operand.elementType();
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "scatter"}, {updatesByWindow(updates, updateWindowDims, windows.count), indices},
      {operand}, Kernel::of([](const KernelArguments &arguments, const auto &windows, const auto &type) {
        poputil::detail::visitSize(type, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const auto *from = static_cast<const T *>(arguments.inputs[0]);
          auto *to = static_cast<T *>(arguments.outputs[0]);
          Shape start(windows.operand.size());
          for (std::size_t i = 0; i != windows.count; ++i, from += windows.elements())
            if (windows.start(static_cast<const std::int32_t *>(arguments.inputs[1]), i, start))
              windows.forEachElement(start, [&](std::size_t k, std::size_t offset) { to[offset] = from[k]; });
        });
      }, windows, type));
}

namespace {

// Copies window `number` of the operand to a buffer, or back.
void moveWindow(poplar::Graph &graph, const Windows &windows, const Tensor &number, const Tensor &indices,
                const Tensor &operand, const Tensor &buffer, bool back, Sequence &prog,
                const poplar::DebugContext &debugContext) {
  const auto type = operand.elementType();
  poplar::detail::addKernel(
      graph, prog, debugContext, {number, indices, back ? buffer : operand}, {back ? operand : buffer},
      Kernel::of([](const KernelArguments &arguments, const auto &windows, const auto &type, const auto &back) {
        poputil::detail::visitSize(type, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const auto *from = static_cast<const T *>(arguments.inputs[2]);
          auto *to = static_cast<T *>(arguments.outputs[0]);
          Shape start(windows.operand.size());
          const auto index = *static_cast<const std::uint32_t *>(arguments.inputs[0]);
          if (!windows.start(static_cast<const std::int32_t *>(arguments.inputs[1]), index, start)) return;
          windows.forEachElement(start, [&](std::size_t k, std::size_t offset) {
            if (back) to[offset] = from[k];
            else to[k] = from[offset];
          });
        });
      }, windows, type, back));
}

}  // namespace

void scatter(poplar::Graph &graph, const Tensor &operand, const Tensor &indices, const Tensor &updates,
             std::size_t indexVectorDim, std::vector<unsigned> updateWindowDims, Shape insertWindowDims,
             std::vector<unsigned> scatterDimsToOperandDims, UpdateComputationFunc &updateComputation,
             Sequence &prog, const poplar::DebugContext &debugContext, const OptionFlags &options) {
  const auto windows = scatterWindows(operand, indices, updates, indexVectorDim, updateWindowDims, insertWindowDims,
                                      scatterDimsToOperandDims, options);
  if (windows.count == 0 || operand.numElements() == 0 || updates.numElements() == 0) return;
  const poplar::DebugContext name{debugContext, "scatter"};
  const auto ordered = updatesByWindow(updates, updateWindowDims, windows.count);
  const auto body = [&](const Tensor &number) {
    Sequence step({}, name);
    auto update = dynamicSlice(graph, ordered, number, {0}, {1}, step, name)[0].reshape(windows.window);
    auto current = poputil::detail::createLinear(graph, operand.elementType(), windows.window, name);
    moveWindow(graph, windows, number, indices, operand, current, false, step, name);
    const auto result = updateComputation(graph, current, update, step);
    moveWindow(graph, windows, number, indices, operand, result, true, step, name);
    return step;
  };
  prog.add(countedLoop(graph, windows.count, body, name));
}

}  // namespace popops
