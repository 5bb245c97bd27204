// Slices and updates at one offset in any dimensions, and circular buffers.
#include <cstring>
#include <ostream>
#include <popops/CircBuf.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>

#include "poputil/library.hpp"

namespace popops {

using namespace poputil::library;

namespace {

// A slice of a row-major tensor: which dimensions are sliced, and to which sizes.
struct Slice {
  Shape whole, part;
  Shape dims;

  Slice() = default;
  Slice(const std::string &function, const Tensor &t, const Shape &dims, const Shape &sizes)
      : whole(t.shape()), part(t.shape()), dims(dims) {
    if (dims.size() != sizes.size())
      fail(function, "dims and sizes have different lengths", "Pass a size for each dimension");
    for (std::size_t i = 0; i != dims.size(); ++i) {
      if (std::count(dims.begin(), dims.end(), dims[i]) > 1)
        fail(function, "dimension " + std::to_string(dims[i]) + " is sliced twice", "Pass it once");
      if (dims[i] >= whole.size() || sizes[i] > whole[dims[i]])
        fail(function, "a slice of " + std::to_string(sizes[i]) + " in dimension " + std::to_string(dims[i]) +
             " of the shape " + poputil::detail::describeShape(whole), "Pass dimensions and sizes of the tensor");
      part[dims[i]] = sizes[i];
    }
  }

  // Whether an offset is the index after the last one.
  bool isPadding(const std::uint32_t *offsets) const {
    for (std::size_t i = 0; i != dims.size(); ++i)
      if (offsets[i] == whole[dims[i]]) return true;
    return false;
  }

  // Calls `visit` with the offsets, in the tensor and in the slice, of runs of elements that lie after each other.
  template <class Visit>
  void forEachRun(const std::uint32_t *offsets, Visit visit) const {
    Shape base(whole.size());
    std::size_t sliced = 0;
    for (std::size_t i = 0; i != dims.size(); ++i) {
      base[dims[i]] = offsets[i] < whole[dims[i]] ? offsets[i] : 0;
      sliced = std::max(sliced, dims[i] + 1);
    }
    std::size_t run = 1;
    for (std::size_t dim = sliced; dim != whole.size(); ++dim) run *= whole[dim];
    walk(base, 0, sliced, 0, 0, run, visit);
  }

 private:
  template <class Visit>
  void walk(const Shape &base, std::size_t dim, std::size_t sliced, std::size_t from, std::size_t to, std::size_t run,
            Visit &visit) const {
    if (dim == sliced) return visit(from * run, to * run, run);
    for (std::size_t i = 0; i != part[dim]; ++i)
      walk(base, dim + 1, sliced, from * whole[dim] + (base[dim] + i) % whole[dim], to * part[dim] + i, run, visit);
  }
};

POPLAR_FIELDS(Slice, part.whole, part.part, part.dims)

// The offsets as a vector: a second dimension has the same values for each tile.
Tensor offsetVector(const std::string &function, const Tensor &offset, const Shape &dims) {
  if (offset.elementType() != poplar::UNSIGNED_INT && offset.elementType() != poplar::INT)
    fail(function, "the offset has the type " + poputil::detail::typeName(offset.elementType()) +
         "; expected unsigned int", "Cast it");
  if (offset.numElements() == dims.size()) return offset.flatten();
  if (offset.rank() == 2 && offset.dim(0) == dims.size()) return offset.slice(0, 1, 1).flatten();
  fail(function, "the offset has the shape " + poputil::detail::describeShape(offset.shape()) + "; expected " +
       std::to_string(dims.size()) + " elements", "Pass an element for each dimension");
}

void checkSlice(const std::string &function, const Slice &slice, const Tensor &t, const Tensor &s) {
  if (s.shape() != slice.part || s.elementType() != t.elementType())
    fail(function, "the slice has the shape " + poputil::detail::describeShape(s.shape()) + " and the type " +
         poputil::detail::typeName(s.elementType()) + "; expected " + poputil::detail::describeShape(slice.part) +
         " and " + poputil::detail::typeName(t.elementType()), "Pass a slice of that shape and type");
}

// Adds a kernel that copies the slice of `t` at an offset to `s`; `back`: the other way.
void addCopy(const std::string &function, poplar::Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offset,
             const Shape &dims, const Shape &sizes, bool back, Sequence &prog, const poplar::DebugContext &debugContext,
             const OptionFlags &options) {
  checkOptions(function.c_str(), options, slice_options);
  const Slice slice(function, t, dims, sizes);
  checkSlice(function, slice, t, s);
  const auto size = poplar::detail::typeSize(t.elementType());
  poputil::detail::addKernelIfAny(
      graph, prog, debugContext, {back ? s : t, offsetVector(function, offset, dims)}, {back ? t : s},
      Kernel::of([](const KernelArguments &arguments, const auto &slice, const auto &size, const auto &back,
                    const auto &bytes, const auto &padded) {
        const auto *from = static_cast<const char *>(arguments.inputs[0]);
        const auto *offsets = static_cast<const std::uint32_t *>(arguments.inputs[1]);
        auto *to = static_cast<char *>(arguments.outputs[0]);
        if (padded && slice.isPadding(offsets)) {
          if (!back) std::memset(to, 0, bytes);
          return;
        }
        slice.forEachRun(offsets, [=](std::size_t whole, std::size_t part, std::size_t run) {
          std::memcpy(to + (back ? whole : part) * size, from + (back ? part : whole) * size, run * size);
        });
      }, slice, size, back, s.numElements() * size, isSet(options, "paddingIndexUsed")));
}

}  // namespace

Tensor createDynamicSliceOutput(poplar::Graph &graph, const Tensor &t, const Tensor &, const Shape &dims,
                                const Shape &sizes, const poplar::DebugContext &debugContext,
                                const OptionFlags &options) {
  checkOptions("popops::createDynamicSliceOutput", options, slice_options);
  const Slice slice("popops::dynamicSlice", t, dims, sizes);
  return poputil::detail::createLinear(graph, t.elementType(), slice.part, {debugContext, "slice"});
}

Tensor dynamicSlice(poplar::Graph &graph, const Tensor &t, const Tensor &offset, const Shape &dims, const Shape &sizes,
                    Sequence &prog, const poplar::DebugContext &debugContext, const OptionFlags &options) {
  const auto out = createDynamicSliceOutput(graph, t, offset, dims, sizes, debugContext, options);
  dynamicSliceWithOutput(graph, out, t, offset, dims, sizes, prog, debugContext, options);
  return out;
}

void dynamicSliceWithOutput(poplar::Graph &graph, const Tensor &output, const Tensor &t, const Tensor &offset,
                            const Shape &dims, const Shape &sizes, Sequence &prog,
                            const poplar::DebugContext &debugContext, const OptionFlags &options) {
  addCopy("popops::dynamicSlice", graph, t, output, offset, dims, sizes, false, prog, {debugContext, "dynamicSlice"},
          options);
}

void dynamicUpdate(poplar::Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offset, const Shape &dims,
                   const Shape &sizes, Sequence &prog, const poplar::DebugContext &debugContext,
                   const OptionFlags &options) {
  addCopy("popops::dynamicUpdate", graph, t, s, offset, dims, sizes, true, prog, {debugContext, "dynamicUpdate"},
          options);
}

poplar::Graph::TileToTensorMapping getSliceMapping(poplar::Graph &graph, const Tensor &t, const Shape &dims,
                                                   const Shape &sizes) {
  const Slice slice("popops::getSliceMapping", t, dims, sizes);
  return poputil::calcLinearTileMapping(graph.getTarget(), slice.part, t.elementType());
}

CircBuf::CircBuf(poplar::Graph &graph, const poplar::Type &dataType, unsigned size, const Shape &shape,
                 const poplar::DebugContext &debugContext)
    : graph_(graph), size_(size) {
  auto all = shape;
  all.insert(all.begin(), size);
  slots_ = poputil::detail::createLinear(graph, dataType, all, {debugContext, "CircBuf"});
  index_ = graph.addVariable(poplar::UNSIGNED_INT, {1}, {debugContext, "CircBufIndex"});
  graph.setTileMapping(index_, 0);
  graph.setInitialValue(index_, 0u);
}

Tensor CircBuf::prev(unsigned i, Sequence &seq, const poplar::DebugContext &debugContext) {
  if (i >= size_)
    fail("popops::CircBuf::prev", "i is " + std::to_string(i) + "; expected less than " + std::to_string(size_),
         "Pass an earlier addition that the buffer holds");
  using namespace expr;
  const auto slot = map(graph_, Rem(Add(_1, Const(size_ - i)), Const(size_)), {index_}, seq, debugContext);
  return dynamicSlice(graph_, slots_, slot, {0}, {1}, seq, debugContext)[0];
}

void CircBuf::add(Tensor t, Sequence &seq, const poplar::DebugContext &debugContext) {
  using namespace expr;
  mapInPlace(graph_, Rem(Add(_1, Const(1u)), Const(size_)), {index_}, seq, debugContext);
  dynamicUpdate(graph_, slots_, t.expand({0}), index_, {0}, {1}, seq, debugContext);
}

poplar::Graph::TileToTensorMapping CircBuf::getTileMapping() { return graph_.getTileMapping(slots_[0]); }

}  // namespace popops
