// Merges and splits intervals, flattens indices, and duplicates and reshapes tensors.
#ifndef poputil_Util_hpp
#define poputil_Util_hpp

#include <cassert>
#include <climits>
#include <poplar/Graph.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Program.hpp>
#include <poplar/Target.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/TensorCloneMethod.hpp>
#include <string>
#include <vector>

namespace poputil {

// Sorts intervals and joins those that touch.
void mergeAdjacentRegions(std::vector<poplar::Interval> &regions);
void mergeAdjacentRegions(std::vector<std::vector<poplar::Interval>> &mapping);

std::vector<poplar::Interval> flattenIntervals(const std::vector<std::vector<poplar::Interval>> &intervals);

// Splits regions into at most `maxPartitions` parts of about as many elements, in multiples of `grainSize`.
std::vector<std::vector<poplar::Interval>> splitRegions(const std::vector<poplar::Interval> &regions,
                                                        unsigned grainSize, unsigned maxPartitions,
                                                        unsigned minElementsPerPartition = 0,
                                                        unsigned maxElementsPerPartition = UINT_MAX,
                                                        unsigned maxElementsPerRegion = UINT_MAX);

std::vector<std::vector<std::vector<poplar::Interval>>> splitRegions(
    const std::vector<std::vector<poplar::Interval>> &regions, unsigned grainSize, unsigned maxPartitions,
    unsigned minElementsPerPartition = 0, unsigned maxElementsPerPartition = UINT_MAX,
    unsigned maxElementsPerRegion = UINT_MAX);

// splitRegions() into one part for each worker of a tile.
std::vector<std::vector<poplar::Interval>> splitRegionsBetweenWorkers(const poplar::Target &target,
                                                                      const std::vector<poplar::Interval> &regions,
                                                                      unsigned grainSize,
                                                                      unsigned minElementsPerPartition = 0,
                                                                      unsigned maxElementsPerPartition = UINT_MAX,
                                                                      unsigned maxElementsPerRegion = UINT_MAX);

std::vector<std::vector<std::vector<poplar::Interval>>> splitRegionsBetweenWorkers(
    const poplar::Target &target, const std::vector<std::vector<poplar::Interval>> &regions, unsigned grainSize,
    unsigned minElementsPerPartition = 0, unsigned maxElementsPerPartition = UINT_MAX,
    unsigned maxElementsPerRegion = UINT_MAX);

// The coordinates of the element `index` of a flattened tensor of this shape.
template <class T>
std::vector<T> unflattenIndex(const std::vector<T> &shape, std::size_t index) {
  std::vector<T> coordinates(shape.size());
  for (auto dim = shape.size(); dim-- > 0; index /= shape[dim]) coordinates[dim] = index % shape[dim];
  assert(index == 0);
  return coordinates;
}

// The reverse of unflattenIndex().
template <class T>
std::size_t flattenIndex(const std::vector<T> &shape, const std::vector<T> &indices) {
  assert(shape.size() == indices.size());
  std::size_t index = 0;
  for (std::size_t dim = 0; dim != shape.size(); ++dim) index = index * shape[dim] + indices[dim];
  return index;
}

std::size_t intervalSequenceNumElements(const std::vector<std::vector<poplar::Interval>> &seq);

// A clone with a copy into it.
poplar::Tensor duplicate(
    poplar::Graph &graph, const poplar::Tensor &in, poplar::program::Sequence &p,
    const poplar::DebugContext &debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

// N clones, stacked in a new first dimension.
poplar::Tensor cloneN(
    poplar::Graph &graph, const poplar::Tensor &t, unsigned N, const poplar::DebugContext &debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

// Splits the range [0, rangeUpperBound) into `splitCount` parts whose sizes differ by at most one; returns the sizes.
std::vector<int> balancedPartition(int rangeUpperBound, int splitCount);

// The value after rounding to half.
double castToDeviceHalfValue(const poplar::Target &target, double input);

// Whether a cast of `input` keeps it within the relative tolerance.
bool checkAccuracyWhenCast(const poplar::Target &target, double input, poplar::Type inputType, poplar::Type outputType,
                           double tolerance);

// Splits each dimension from `startDim` into a dimension of size/factor and, after all of these, one of the factor.
poplar::Tensor factorDims(const poplar::Tensor &t, const std::vector<std::size_t> &factors, unsigned startDim = 0);

// The reverse of factorDims().
poplar::Tensor unfactorDims(const poplar::Tensor &t, unsigned numDims, unsigned startDim = 0);

// The intervals that put elements which were taken in the order of `intervals` back into place.
std::vector<poplar::Interval> calculateUnshufflingIntervals(const std::vector<poplar::Interval> &intervals);

}  // namespace poputil

#endif
