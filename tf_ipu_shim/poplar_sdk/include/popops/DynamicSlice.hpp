// Slices at offsets that are known when the program runs.
//
// dynamicSlice() and dynamicUpdate() wrap around at the end of a dimension. An offset outside of it counts as 0. The
// multi functions have one index for each slice. An index outside of the dimension reads zeros (index 0 with the option
// remapOutOfBoundIndices) and updates nothing. Plans have no effect on values or mappings.
#ifndef popops_DynamicSlice_hpp
#define popops_DynamicSlice_hpp

#include <iosfwd>
#include <memory>
#include <poplar/ArrayRef.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <string>
#include <vector>

namespace popops {

// How lookups of a table are planned: the sizes that embedding::plan() was given.
class SlicePlan {
 public:
  SlicePlan() = default;
  explicit SlicePlan(std::string description, bool validatesIndices = false)
      : description_(std::move(description)), validates_indices_(validatesIndices) {}
  bool validatesIndices() const { return validates_indices_; }

  friend std::ostream &operator<<(std::ostream &os, const SlicePlan &plan);
  friend bool operator<(const SlicePlan &a, const SlicePlan &b) noexcept { return a.description_ < b.description_; }
  friend bool operator==(const SlicePlan &a, const SlicePlan &b) noexcept { return a.description_ == b.description_; }
  friend bool operator!=(const SlicePlan &a, const SlicePlan &b) noexcept { return !(a == b); }

 private:
  std::string description_;
  bool validates_indices_ = false;
};

// Tensors to be sliced: mapped linearly.
poplar::Tensor createSliceableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<size_t> &shape,
                                     const std::vector<size_t> &dims, const std::vector<size_t> &sizes,
                                     std::size_t minGrainSize = 0, const poplar::DebugContext &debugContext = {});
poplar::Tensor createSliceableTensor(poplar::Graph &graph, const poplar::Type &type, const std::vector<size_t> &shape,
                                     const std::vector<size_t> &dims, const std::vector<size_t> &sizes,
                                     const SlicePlan &plan, const poplar::OptionFlags &options,
                                     const poplar::DebugContext &debugContext = {});
poplar::Tensor createGroupedSliceableTensor(poplar::Graph &graph, const poplar::Type &type,
                                            const std::size_t groupSize, const std::vector<std::size_t> &shape,
                                            const std::vector<std::size_t> &dims,
                                            const std::vector<std::size_t> &sizes, const SlicePlan &plan,
                                            const poplar::OptionFlags &options,
                                            const poplar::DebugContext &debugContext = {});

// Slices of such a tensor: {numIndices, the shape with `sizes` in the dimensions `dims`}.
poplar::Tensor createSliceTensor(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<size_t> &dims,
                                 const std::vector<size_t> &sizes, std::size_t numIndices,
                                 const poplar::DebugContext &debugContext = {});
poplar::Tensor createSliceTensor(poplar::Graph &graph, const poplar::Type &type,
                                 const std::vector<std::size_t> &shape, const std::vector<std::size_t> &dims,
                                 const std::vector<std::size_t> &sizes, std::size_t numIndices, const SlicePlan &plan,
                                 const poplar::OptionFlags &options, const poplar::DebugContext &debugContext = {});
poplar::Tensor createGroupedSliceTensor(poplar::Graph &graph, const poplar::Type &type, const std::size_t groupSize,
                                        const std::vector<std::size_t> &shape, const std::vector<std::size_t> &dims,
                                        const std::vector<std::size_t> &sizes, const std::size_t numIndices,
                                        const SlicePlan &plan, const poplar::OptionFlags &options,
                                        const poplar::DebugContext &debugContext = {});

// Unsigned integers of shape {numIndices, dims.size()}.
poplar::Tensor createIndicesTensor(poplar::Graph &graph, const std::vector<std::size_t> &dims, std::size_t numIndices,
                                   const SlicePlan &plan, const poplar::OptionFlags &options,
                                   const poplar::DebugContext &debugContext = {});
poplar::Tensor createGroupedIndicesTensor(poplar::Graph &graph, const std::size_t groupSize,
                                          const std::vector<std::size_t> &dims, const std::size_t numIndices,
                                          const SlicePlan &plan, const poplar::OptionFlags &options,
                                          const poplar::DebugContext &debugContext = {});

// The tensor of which `s` is a slice, `numSlices` times as large in the dimensions `dims`.
poplar::Tensor createSliceableTensorFromSlice(poplar::Graph &graph, const poplar::Tensor &s,
                                              const std::vector<std::size_t> &dims,
                                              const std::vector<std::size_t> &numSlices,
                                              const poplar::DebugContext &debugContext = {});

// The slice of `sizes` at `offset`, which has an element for each of the dimensions `dims`.
poplar::Tensor dynamicSlice(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &offset,
                            const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                            poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                            const poplar::OptionFlags &options = {});
poplar::Tensor createDynamicSliceOutput(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &offset,
                                        const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                                        const poplar::DebugContext &debugContext = {},
                                        const poplar::OptionFlags &options = {});
void dynamicSliceWithOutput(poplar::Graph &graph, const poplar::Tensor &output, const poplar::Tensor &t,
                            const poplar::Tensor &offset, const std::vector<std::size_t> &dims,
                            const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                            const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {});

// Writes `s` to the slice of `t`.
void dynamicUpdate(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s,
                   const poplar::Tensor &offset, const std::vector<std::size_t> &dims,
                   const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                   const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {});

// The mapping of a slice: that of createDynamicSliceOutput().
poplar::Graph::TileToTensorMapping getSliceMapping(poplar::Graph &graph, const poplar::Tensor &t,
                                                   const std::vector<std::size_t> &dims,
                                                   const std::vector<std::size_t> &sizes);

// One slice for each index: the result has a first dimension for the indices, whose tensor has the shape {N, 1}.
poplar::Tensor multiSlice(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &offsets,
                          const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                          poplar::program::Sequence &prog, const SlicePlan &plan, const poplar::OptionFlags &options,
                          const poplar::DebugContext &debugContext = {});
poplar::Tensor multiSlice(poplar::Graph &graph, const poplar::Tensor &t, poplar::ArrayRef<unsigned> offsets,
                          std::size_t dim, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &optionFlags = {});

// Writes each slice of `s` to its index; the last of equal indices stays.
void multiUpdate(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s, const poplar::Tensor &offsets,
                 const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                 poplar::program::Sequence &prog, const SlicePlan &plan, const poplar::OptionFlags &options,
                 const poplar::DebugContext &debugContext = {});

// Adds each slice, times a scale. Slices of half are accumulated in float and rounded once.
void multiUpdateAdd(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s,
                    const poplar::Tensor &offsets, const poplar::Tensor &scale, const std::vector<std::size_t> &dims,
                    const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog, const SlicePlan &plan,
                    const poplar::OptionFlags &options, const poplar::DebugContext &debugContext = {});
void multiUpdateAdd(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s,
                    poplar::ArrayRef<unsigned> offsets, const poplar::Tensor &scale, std::size_t dim,
                    poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                    const poplar::OptionFlags &optionFlags = {});

// Keeps the larger of each element and its updates.
void multiUpdateMax(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s,
                    const poplar::Tensor &offsets, const std::vector<std::size_t> &dims,
                    const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog, const SlicePlan &plan,
                    const poplar::OptionFlags &options, const poplar::DebugContext &debugContext = {});

// Multiplies by each slice.
void multiUpdateMul(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s,
                    const poplar::Tensor &offsets, const std::vector<std::size_t> &dims,
                    const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog, const SlicePlan &plan,
                    const poplar::OptionFlags &options, const poplar::DebugContext &debugContext = {});

// The same for groups: all tensors have a first dimension of the groups, which `dims` does not count.
poplar::Tensor groupedMultiSlice(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &offsets,
                                 const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                                 poplar::program::Sequence &prog, const SlicePlan &plan,
                                 const poplar::OptionFlags &options, const poplar::DebugContext &debugContext = {});
void groupedMultiUpdate(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s,
                        const poplar::Tensor &offsets, const std::vector<std::size_t> &dims,
                        const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog, const SlicePlan &plan,
                        const poplar::OptionFlags &options, const poplar::DebugContext &debugContext = {});
void groupedMultiUpdateAdd(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s,
                           const poplar::Tensor &offsets, const poplar::Tensor &scale,
                           const std::vector<std::size_t> &dims, const std::vector<std::size_t> &sizes,
                           poplar::program::Sequence &prog, const SlicePlan &plan, const poplar::OptionFlags &options,
                           const poplar::DebugContext &debugContext = {});
void groupedMultiUpdateMax(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s,
                           const poplar::Tensor &offsets, const std::vector<std::size_t> &dims,
                           const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                           const SlicePlan &plan, const poplar::OptionFlags &options,
                           const poplar::DebugContext &debugContext = {});
void groupedMultiUpdateMul(poplar::Graph &graph, const poplar::Tensor &t, const poplar::Tensor &s,
                           const poplar::Tensor &offsets, const std::vector<std::size_t> &dims,
                           const std::vector<std::size_t> &sizes, poplar::program::Sequence &prog,
                           const SlicePlan &plan, const poplar::OptionFlags &options,
                           const poplar::DebugContext &debugContext = {});

namespace embedding {

// A plan of lookups of `outputSize` elements in a table of `numEntries` rows.
SlicePlan plan(const poplar::Graph &graph, const poplar::Type &dataType, const std::size_t numEntries,
               const std::size_t outputSize, const std::vector<std::size_t> &numLookups,
               const poplar::OptionFlags &options);
SlicePlan plan(const poplar::Graph &graph, const poplar::Type &dataType, const std::size_t groupSize,
               const std::size_t numEntries, const std::size_t outputSize, const std::vector<std::size_t> &numLookups,
               const poplar::OptionFlags &options);

// The arguments of one plan().
struct SlicePlanningParameters {
  const poplar::Graph &graph;
  const poplar::Type dataType;
  const std::size_t groupSize = 1;
  const std::size_t numEntries;
  const std::size_t outputSize;
  const std::vector<std::size_t> numLookups;
  const poplar::OptionFlags optionFlags;
  SlicePlanningParameters(const poplar::Graph &graph, const poplar::Type &dataType, const std::size_t groupSize,
                          const std::size_t numEntries, const std::size_t outputSize,
                          const std::vector<std::size_t> &numLookups, const poplar::OptionFlags &optionFlags)
      : graph(graph), dataType(dataType), groupSize(groupSize), numEntries(numEntries), outputSize(outputSize),
        numLookups(numLookups), optionFlags(optionFlags) {}
  SlicePlanningParameters(const poplar::Graph &graph, const poplar::Type &dataType, const std::size_t numEntries,
                          const std::size_t outputSize, const std::vector<std::size_t> &numLookups,
                          const poplar::OptionFlags &optionFlags)
      : SlicePlanningParameters(graph, dataType, 1, numEntries, outputSize, numLookups, optionFlags) {}
};

std::vector<SlicePlan> planMultiple(const std::vector<SlicePlanningParameters> &parameters);

}  // namespace embedding
}  // namespace popops

#endif
