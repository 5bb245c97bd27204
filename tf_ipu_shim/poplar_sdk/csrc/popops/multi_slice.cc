// Reads and updates slices of one dimension at many indices, also for groups of tensors.
#include <cstring>
#include <ostream>
#include <poplar/exceptions.hpp>
#include <popops/DynamicSlice.hpp>
#include <sstream>

#include "poputil/library.hpp"

namespace popops {

using namespace poputil::library;

namespace {

using poputil::detail::Arithmetic;

// The effect of a lookup outside of a table.
struct Outside {
  bool remap = false, padded = false, validate = false;
};

// Row-major table of `groups` times `outer` times `entries` times `inner`, and `lookups` slices of `size` entries.
struct Table {
  std::size_t groups, lookups, outer, entries, inner, size;
  Outside outside;

  std::size_t sliceElements() const { return outer * size * inner; }

  // Calls `visit` with the offsets of each run in the table and in the slices, for the lookups of one group. A lookup
  // outside of the table is skipped, unless the options say otherwise.
  template <class Visit>
  void forEachRun(const std::uint32_t *indices, std::size_t group, Visit visit) const {
    for (std::size_t lookup = 0; lookup != lookups; ++lookup) {
      std::size_t index = indices[group * lookups + lookup];
      if (!isInside(index)) {
        if (!outside.remap || isPadding(index)) continue;
        index = 0;
      }
      for (std::size_t o = 0; o != outer; ++o)
        visit(((group * outer + o) * entries + index) * inner,
              (group * lookups + lookup) * sliceElements() + o * size * inner, size * inner);
    }
  }

  // Throws application_runtime_error at an index outside of the table if the options say so.
  void validate(const std::uint32_t *indices) const {
    if (!outside.validate || outside.remap) return;
    for (std::size_t i = 0; i != groups * lookups; ++i)
      if (!isInside(indices[i]) && !isPadding(indices[i]))
        throw poplar::application_runtime_error(
            "A lookup failed: index " + std::to_string(i) + " is " + std::to_string(indices[i]) + "; expected at most " +
            std::to_string(entries - size) + ". Fix the index, or leave the option validateIndices out.");
  }

 private:
  bool isInside(std::size_t index) const { return index + size <= entries; }
  bool isPadding(std::size_t index) const { return outside.padded && index == entries; }
};

// The grouped forms of a table, slices and indices.
struct Lookup {
  Table table;
  Tensor indices;
  Shape sliceShape;
};

Outside outsideOf(const std::string &function, const SlicePlan &plan, const OptionFlags &options) {
  checkOptions(function.c_str(), options, multi_slice_options);
  return {isSet(options, "remapOutOfBoundIndices"), isSet(options, "paddingIndexUsed"),
          plan.validatesIndices() || isSet(options, "validateIndices")};
}

Lookup describe(const std::string &function, const Tensor &t, const Tensor &offsets, const Shape &dims,
                const Shape &sizes, const SlicePlan &plan, const OptionFlags &options) {
  if (dims.size() != 1 || sizes.size() != 1)
    fail(function, "dims and sizes have " + std::to_string(dims.size()) + " and " + std::to_string(sizes.size()) +
         " elements; expected 1", "Slice one dimension");
  if (t.rank() < 2 || dims[0] >= t.rank() - 1)
    fail(function, "dimension " + std::to_string(dims[0]) + " is not one of the tensor of rank " +
         std::to_string(std::max(t.rank(), 1u) - 1), "Pass a lower one");
  if (offsets.rank() != 3 || offsets.dim(0) != t.dim(0) || offsets.dim(2) != 1) {
    fail(function, "the offsets have the shape " + poputil::detail::describeShape(offsets.shape()) + "; expected {" +
         std::to_string(t.dim(0)) + ",number of slices,1}", "Reshape them");
  }
  if (offsets.elementType() != poplar::UNSIGNED_INT && offsets.elementType() != poplar::INT)
    fail(function, "the offsets have the type " + poputil::detail::typeName(offsets.elementType()) +
         "; expected unsigned int", "Cast them");
  const auto whole = t.shape();
  const auto around = poputil::detail::around(Shape(whole.begin() + 1, whole.end()), dims[0]);
  if (sizes[0] > around.size) fail(function, "a slice is longer than the dimension", "Pass a smaller size");
  Lookup lookup;
  lookup.table = {whole[0], offsets.numElements() / std::max<std::size_t>(whole[0], 1), around.outer, around.size,
                  around.inner, sizes[0], outsideOf(function, plan, options)};
  lookup.indices = offsets.flatten();
  lookup.sliceShape = whole;
  lookup.sliceShape[dims[0] + 1] = sizes[0];
  lookup.sliceShape.insert(lookup.sliceShape.begin() + 1, lookup.table.lookups);
  return lookup;
}

// Of the forms without groups.
void checkOffsets(const std::string &function, const Tensor &offsets) {
  if (offsets.rank() != 2 || offsets.dim(1) != 1)
    fail(function, "the offsets have the shape " + poputil::detail::describeShape(offsets.shape()) +
         "; expected {number of slices,1}", "Reshape them: expand({1}) adds the dimension to a vector");
}

void checkSlices(const std::string &function, const Lookup &lookup, const Tensor &t, const Tensor &s) {
  if (s.shape() != lookup.sliceShape || s.elementType() != t.elementType())
    fail(function, "the slices have the shape " + poputil::detail::describeShape(s.shape()) + " and the type " +
         poputil::detail::typeName(s.elementType()) + "; expected " +
         poputil::detail::describeShape(lookup.sliceShape) + " and " + poputil::detail::typeName(t.elementType()),
         "Pass slices of that shape and type");
}

Tensor constantIndices(poplar::Graph &graph, poplar::ArrayRef<unsigned> offsets,
                       const poplar::DebugContext &debugContext) {
  const auto indices =
      graph.addConstant(poplar::UNSIGNED_INT, {offsets.size(), 1}, offsets, {debugContext, "offsets"});
  graph.setTileMapping(indices, 0);
  return indices;
}

// How an element is combined with its update.
#define COMBINATION(NAME, RESULT)                                                                 \
  struct NAME {                                                                                   \
    template <class Before, class Value, class Factor>                                            \
    static auto of([[maybe_unused]] Before before, Value value, [[maybe_unused]] Factor factor) { \
      return RESULT;                                                                              \
    }                                                                                             \
  };
COMBINATION(Replace, value)
COMBINATION(Scaled, before + value * factor)
COMBINATION(Largest, before > value ? before : value)
COMBINATION(Multiply, before * value)
#undef COMBINATION

// Combines elements with their updates; float16 values are combined in float and rounded at the end.
template <class Combine>
void addUpdate(poplar::Graph &graph, const std::string &function, const Tensor &t, const Tensor &s,
               const Tensor &offsets, const Tensor *scale, const Shape &dims, const Shape &sizes, Sequence &prog,
               const SlicePlan &plan, const OptionFlags &options, const poplar::DebugContext &debugContext, Combine) {
  const auto lookup = describe(function, t, offsets, dims, sizes, plan, options);
  checkSlices(function, lookup, t, s);
  std::vector<Tensor> inputs{s, lookup.indices};
  const auto type = t.elementType();
  const auto scale_type = scale != nullptr ? scale->elementType() : type;
  if (scale != nullptr) {
    if (scale->numElements() != 1) fail(function, "the scale is not a scalar", "Pass one element");
    inputs.push_back(scale->flatten());
  }
  const auto update = Kernel::of([](const KernelArguments &arguments, const auto &table, const auto &type,
                                    const auto &scale_type, const auto &scaled) {
    table.validate(static_cast<const std::uint32_t *>(arguments.inputs[1]));
    poputil::detail::visitType(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = Arithmetic<T>;
      A factor = A(1);
      if (scaled)
        poputil::detail::visitType(scale_type, [&](auto scale_tag) {
          using S = typename decltype(scale_tag)::type;
          factor = static_cast<A>(poputil::detail::load(*static_cast<const S *>(arguments.inputs[2])));
        });
      const auto *slices = static_cast<const T *>(arguments.inputs[0]);
      const auto *indices = static_cast<const std::uint32_t *>(arguments.inputs[1]);
      auto *out = static_cast<T *>(arguments.outputs[0]);
      poplar::detail::parallelFor(table.groups, 1, [&](std::size_t begin, std::size_t end) {
        const auto elements = table.outer * table.entries * table.inner;
        for (; begin != end; ++begin) {
          const auto first = begin * elements;
          std::vector<float> wide;
          if constexpr (std::is_same_v<T, poputil::detail::Half>)
            wide = poputil::detail::readFloats(poplar::HALF, out + first, elements);
          table.forEachRun(indices, begin, [&](std::size_t whole, std::size_t part, std::size_t run) {
            for (std::size_t i = 0; i != run; ++i) {
              const auto value = poputil::detail::load(slices[part + i]);
              if constexpr (std::is_same_v<T, poputil::detail::Half>)
                wide[whole - first + i] = Combine::of(wide[whole - first + i], value, factor);
              else
                out[whole + i] = static_cast<T>(Combine::of(out[whole + i], value, factor));
            }
          });
          if constexpr (std::is_same_v<T, poputil::detail::Half>)
            poputil::detail::writeFloats(poplar::HALF, wide.data(), out + first, elements);
        }
      });
    });
  }, lookup.table, type, scale_type, scale != nullptr);
  poputil::detail::addKernelIfAny(graph, prog, {debugContext, "multiUpdate"}, inputs, {t}, update);
}

void checkDimension(const std::string &function, std::size_t dim, const Shape &shape) {
  if (dim >= shape.size())
    fail(function, "dimension " + std::to_string(dim) + " is not one of the shape " +
         poputil::detail::describeShape(shape), "Pass a lower one");
}

Shape sliceShape(const std::string &function, Shape shape, const Shape &dims, const Shape &sizes, std::size_t numIndices) {
  if (dims.size() != sizes.size())
    fail(function, "dims and sizes have different lengths", "Pass a size for each dimension");
  for (std::size_t i = 0; i != dims.size(); ++i) {
    checkDimension(function, dims[i], shape);
    if (sizes[i] > shape[dims[i]])
      fail(function, "a slice of " + std::to_string(sizes[i]) + " in dimension " +
           std::to_string(dims[i]) + " of the shape " + poputil::detail::describeShape(shape), "Pass a smaller size");
    shape[dims[i]] = sizes[i];
  }
  shape.insert(shape.begin(), numIndices);
  return shape;
}

Shape grouped(Shape shape, std::size_t groups) {
  shape.insert(shape.begin(), groups);
  return shape;
}

}  // namespace

std::ostream &operator<<(std::ostream &os, const SlicePlan &plan) { return os << "SlicePlan" << plan.description_; }

Tensor createSliceableTensor(poplar::Graph &graph, const poplar::Type &type, const Shape &shape, const Shape &dims,
                             const Shape &sizes, std::size_t minGrainSize, const poplar::DebugContext &debugContext) {
  sliceShape("popops::createSliceableTensor", shape, dims, sizes, 1);
  const auto tensor = graph.addVariable(type, shape, debugContext);
  if (minGrainSize == 0) poputil::mapTensorLinearly(graph, tensor);
  else poputil::mapTensorLinearly(graph, tensor, minGrainSize, minGrainSize);
  return tensor;
}

Tensor createSliceableTensor(poplar::Graph &graph, const poplar::Type &type, const Shape &shape, const Shape &dims,
                             const Shape &sizes, const SlicePlan &, const OptionFlags &options,
                             const poplar::DebugContext &debugContext) {
  checkOptions("popops::createSliceableTensor", options, multi_slice_options);
  return createSliceableTensor(graph, type, shape, dims, sizes, 0, debugContext);
}

Tensor createGroupedSliceableTensor(poplar::Graph &graph, const poplar::Type &type, const std::size_t groupSize,
                                    const Shape &shape, const Shape &dims, const Shape &sizes, const SlicePlan &,
                                    const OptionFlags &options, const poplar::DebugContext &debugContext) {
  checkOptions("popops::createGroupedSliceableTensor", options, multi_slice_options);
  return createSliceableTensor(graph, type, grouped(shape, groupSize), dims, sizes, 0, debugContext);
}

Tensor createSliceTensor(poplar::Graph &graph, const Tensor &t, const Shape &dims, const Shape &sizes,
                         std::size_t numIndices, const poplar::DebugContext &debugContext) {
  return createSliceTensor(graph, t.elementType(), t.shape(), dims, sizes, numIndices, {}, {}, debugContext);
}

Tensor createSliceTensor(poplar::Graph &graph, const poplar::Type &type, const Shape &shape, const Shape &dims,
                         const Shape &sizes, std::size_t numIndices, const SlicePlan &, const OptionFlags &options,
                         const poplar::DebugContext &debugContext) {
  checkOptions("popops::createSliceTensor", options, multi_slice_options);
  return poputil::detail::createLinear(graph, type, sliceShape("popops::createSliceTensor", shape, dims, sizes, numIndices), debugContext);
}

Tensor createGroupedSliceTensor(poplar::Graph &graph, const poplar::Type &type, const std::size_t groupSize,
                                const Shape &shape, const Shape &dims, const Shape &sizes,
                                const std::size_t numIndices, const SlicePlan &, const OptionFlags &options,
                                const poplar::DebugContext &debugContext) {
  checkOptions("popops::createGroupedSliceTensor", options, multi_slice_options);
  return poputil::detail::createLinear(graph, type, grouped(sliceShape("popops::createSliceTensor", shape, dims, sizes, numIndices), groupSize),
                                       debugContext);
}

Tensor createIndicesTensor(poplar::Graph &graph, const Shape &dims, std::size_t numIndices, const SlicePlan &,
                           const OptionFlags &options, const poplar::DebugContext &debugContext) {
  checkOptions("popops::createIndicesTensor", options, multi_slice_options);
  return poputil::detail::createLinear(graph, poplar::UNSIGNED_INT, {numIndices, dims.size()}, debugContext);
}

Tensor createGroupedIndicesTensor(poplar::Graph &graph, const std::size_t groupSize, const Shape &dims,
                                  const std::size_t numIndices, const SlicePlan &, const OptionFlags &options,
                                  const poplar::DebugContext &debugContext) {
  checkOptions("popops::createGroupedIndicesTensor", options, multi_slice_options);
  return poputil::detail::createLinear(graph, poplar::UNSIGNED_INT, {groupSize, numIndices, dims.size()},
                                       debugContext);
}

Tensor createSliceableTensorFromSlice(poplar::Graph &graph, const Tensor &s, const Shape &dims, const Shape &numSlices,
                                      const poplar::DebugContext &debugContext) {
  auto shape = s.shape();
  if (dims.size() != numSlices.size())
    fail("popops::createSliceableTensorFromSlice", "dims and numSlices have " + std::to_string(dims.size()) + " and " +
         std::to_string(numSlices.size()) + " elements; expected as many", "Pass a number of slices for each dimension");
  for (std::size_t i = 0; i != dims.size(); ++i) {
    checkDimension("popops::createSliceableTensorFromSlice", dims[i], shape);
    shape[dims[i]] *= numSlices[i];
  }
  return poputil::detail::createLinear(graph, s.elementType(), shape, debugContext);
}

Tensor groupedMultiSlice(poplar::Graph &graph, const Tensor &t, const Tensor &offsets, const Shape &dims,
                         const Shape &sizes, Sequence &prog, const SlicePlan &plan, const OptionFlags &options,
                         const poplar::DebugContext &debugContext) {
  const auto lookup = describe("popops::multiSlice", t, offsets, dims, sizes, plan, options);
  const auto out =
      poputil::detail::createLinear(graph, t.elementType(), lookup.sliceShape, {debugContext, "multiSlice"});
  const auto size = poplar::detail::typeSize(t.elementType());
  const auto bytes = out.numElements() * size;
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "multiSlice"}, {t, lookup.indices}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &table, const auto &size, const auto &bytes) {
        const auto *from = static_cast<const char *>(arguments.inputs[0]);
        const auto *indices = static_cast<const std::uint32_t *>(arguments.inputs[1]);
        auto *to = static_cast<char *>(arguments.outputs[0]);
        table.validate(indices);
        std::memset(to, 0, bytes);
        for (std::size_t group = 0; group != table.groups; ++group)
          table.forEachRun(indices, group, [=](std::size_t whole, std::size_t part, std::size_t run) {
            std::memcpy(to + part * size, from + whole * size, run * size);
          });
      }, lookup.table, size, bytes));
  return out;
}

Tensor multiSlice(poplar::Graph &graph, const Tensor &t, const Tensor &offsets, const Shape &dims, const Shape &sizes,
                  Sequence &prog, const SlicePlan &plan, const OptionFlags &options,
                  const poplar::DebugContext &debugContext) {
  checkOffsets("popops::multiSlice", offsets);
  return groupedMultiSlice(graph, t.expand({0}), offsets.expand({0}), dims, sizes, prog, plan, options,
                           debugContext)[0];
}

Tensor multiSlice(poplar::Graph &graph, const Tensor &t, poplar::ArrayRef<unsigned> offsets, std::size_t dim,
                  Sequence &prog, const poplar::DebugContext &debugContext,
                  const OptionFlags &optionFlags) {
  return multiSlice(graph, t, constantIndices(graph, offsets, debugContext), {dim}, {1}, prog, {}, optionFlags,
                    debugContext);
}

// The updates without a scale: of groups of tables, and of one table.
#define MULTI_UPDATE(name, groupedName, combine)                                                                       \
  void groupedName(poplar::Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offsets, const Shape &dims,   \
                   const Shape &sizes, Sequence &prog, const SlicePlan &plan, const OptionFlags &options,              \
                   const poplar::DebugContext &debugContext) {                                                         \
    addUpdate(graph, "popops::" #name, t, s, offsets, nullptr, dims, sizes, prog, plan, options, debugContext,         \
              combine);                                                                                                \
  }                                                                                                                    \
  void name(poplar::Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offsets, const Shape &dims,          \
            const Shape &sizes, Sequence &prog, const SlicePlan &plan, const OptionFlags &options,                     \
            const poplar::DebugContext &debugContext) {                                                                \
    checkOffsets("popops::" #name, offsets);                                                                           \
    groupedName(graph, t.expand({0}), s.expand({0}), offsets.expand({0}), dims, sizes, prog, plan, options,            \
                debugContext);                                                                                         \
  }

MULTI_UPDATE(multiUpdate, groupedMultiUpdate, Replace())
MULTI_UPDATE(multiUpdateMax, groupedMultiUpdateMax, Largest())
MULTI_UPDATE(multiUpdateMul, groupedMultiUpdateMul, Multiply())
#undef MULTI_UPDATE

void groupedMultiUpdateAdd(poplar::Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offsets,
                           const Tensor &scale, const Shape &dims, const Shape &sizes, Sequence &prog,
                           const SlicePlan &plan, const OptionFlags &options,
                           const poplar::DebugContext &debugContext) {
  addUpdate(graph, "popops::multiUpdateAdd", t, s, offsets, &scale, dims, sizes, prog, plan, options, debugContext,
            Scaled());
}

void multiUpdateAdd(poplar::Graph &graph, const Tensor &t, const Tensor &s, const Tensor &offsets, const Tensor &scale,
                    const Shape &dims, const Shape &sizes, Sequence &prog, const SlicePlan &plan,
                    const OptionFlags &options, const poplar::DebugContext &debugContext) {
  checkOffsets("popops::multiUpdateAdd", offsets);
  groupedMultiUpdateAdd(graph, t.expand({0}), s.expand({0}), offsets.expand({0}), scale, dims, sizes, prog, plan,
                        options, debugContext);
}

void multiUpdateAdd(poplar::Graph &graph, const Tensor &t, const Tensor &s, poplar::ArrayRef<unsigned> offsets,
                    const Tensor &scale, std::size_t dim, Sequence &prog,
                    const poplar::DebugContext &debugContext, const OptionFlags &optionFlags) {
  multiUpdateAdd(graph, t, s, constantIndices(graph, offsets, debugContext), scale, {dim}, {1}, prog, {}, optionFlags,
                 debugContext);
}

namespace embedding {

SlicePlan plan(const poplar::Graph &graph, const poplar::Type &dataType, const std::size_t numEntries,
               const std::size_t outputSize, const std::vector<std::size_t> &numLookups,
               const OptionFlags &options) {
  return plan(graph, dataType, 1, numEntries, outputSize, numLookups, options);
}

SlicePlan plan(const poplar::Graph &, const poplar::Type &dataType, const std::size_t groupSize,
               const std::size_t numEntries, const std::size_t outputSize, const std::vector<std::size_t> &numLookups,
               const OptionFlags &options) {
  checkOptions("popops::embedding::plan", options, multi_slice_options);
  if (valueOf(options, "usedForSlice", "true") != "true" && valueOf(options, "usedForUpdate", "true") != "true")
    fail("popops::embedding::plan", "usedForSlice and usedForUpdate are false", "Leave one of them true");
  const bool validates = isSet(options, "validateIndices") && !isSet(options, "remapOutOfBoundIndices");
  std::ostringstream text;
  text << "{type=" << poputil::detail::typeName(dataType) << ", groups=" << groupSize << ", entries=" << numEntries
       << ", outputSize=" << outputSize << ", lookups=" << poputil::detail::describeShape(numLookups) << (validates ? ", validates indices" : "") << "}";
  return SlicePlan(text.str(), validates);
}

std::vector<SlicePlan> planMultiple(const std::vector<SlicePlanningParameters> &parameters) {
  std::vector<SlicePlan> plans;
  for (const auto &one : parameters)
    plans.push_back(plan(one.graph, one.dataType, one.groupSize, one.numEntries, one.outputSize, one.numLookups,
                         one.optionFlags));
  return plans;
}

}  // namespace embedding
}  // namespace popops
