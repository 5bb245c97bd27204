// Joins and splits intervals.
#include <algorithm>
#include <numeric>
#include <poputil/Util.hpp>
#include <poputil/detail/elements.hpp>

namespace poputil {

namespace {

using poplar::Interval;
using Regions = std::vector<Interval>;

std::size_t ceilDivide(std::size_t value, std::size_t by) { return (value + by - 1) / by; }

std::size_t countElements(const Regions &regions) {
  return std::accumulate(regions.begin(), regions.end(), std::size_t(0),
                         [](std::size_t sum, const Interval &region) { return sum + region.size(); });
}

// The number of elements of each part, the grains spread evenly.
std::vector<std::size_t> partSizes(std::size_t elements, std::size_t grain, std::size_t most, std::size_t minimum,
                                   std::size_t maximum) {
  grain = std::max<std::size_t>(grain, 1);
  const auto grains = ceilDivide(elements, grain);
  auto parts = std::min(grains, most);
  if (minimum > 0) parts = std::min(parts, std::max<std::size_t>(elements / minimum, 1));
  if (maximum < elements) parts = std::max(parts, ceilDivide(grains, std::max<std::size_t>(maximum / grain, 1)));
  std::vector<std::size_t> sizes;
  for (std::size_t part = 0, begin = 0; part != parts; ++part) {
    const auto end = std::min(elements, grains * (part + 1) / parts * grain);
    sizes.push_back(end - begin);
    begin = end;
  }
  return sizes;
}

// Takes the first `elements` from the front of regions, whose position is kept in `region` and `offset`.
Regions takeFront(const Regions &regions, std::size_t &region, std::size_t &offset, std::size_t elements,
                  std::size_t longest) {
  Regions taken;
  while (elements != 0) {
    const auto begin = regions[region].begin() + offset;
    const auto length = std::min({elements, regions[region].end() - begin, longest});
    if (length != 0) taken.emplace_back(begin, begin + length);
    elements -= length;
    offset += length;
    if (offset == regions[region].size()) {
      ++region;
      offset = 0;
    }
  }
  return taken;
}

}  // namespace

void mergeAdjacentRegions(std::vector<Interval> &regions) {
  std::sort(regions.begin(), regions.end());
  Regions merged;
  for (const auto &region : regions) {
    if (region.size() == 0) continue;
    if (!merged.empty() && region.begin() <= merged.back().end())
      merged.back() = {merged.back().begin(), std::max(merged.back().end(), region.end())};
    else
      merged.push_back(region);
  }
  regions = std::move(merged);
}

void mergeAdjacentRegions(std::vector<std::vector<Interval>> &mapping) {
  for (auto &regions : mapping) mergeAdjacentRegions(regions);
}

std::vector<Interval> flattenIntervals(const std::vector<std::vector<Interval>> &intervals) {
  Regions flat;
  for (const auto &part : intervals) flat.insert(flat.end(), part.begin(), part.end());
  return flat;
}

std::size_t intervalSequenceNumElements(const std::vector<std::vector<Interval>> &seq) {
  return countElements(flattenIntervals(seq));
}

std::vector<std::vector<Interval>> splitRegions(const std::vector<Interval> &regions, unsigned grainSize,
                                                unsigned maxPartitions, unsigned minElementsPerPartition,
                                                unsigned maxElementsPerPartition, unsigned maxElementsPerRegion) {
  std::vector<Regions> parts;
  std::size_t region = 0, offset = 0;
  for (const auto size : partSizes(countElements(regions), grainSize, maxPartitions, minElementsPerPartition,
                                   maxElementsPerPartition))
    parts.push_back(takeFront(regions, region, offset, size, maxElementsPerRegion));
  return parts;
}

std::vector<std::vector<std::vector<Interval>>> splitRegions(const std::vector<std::vector<Interval>> &regions,
                                                             unsigned grainSize, unsigned maxPartitions,
                                                             unsigned minElementsPerPartition,
                                                             unsigned maxElementsPerPartition,
                                                             unsigned maxElementsPerRegion) {
  std::vector<std::vector<Regions>> parts;
  std::size_t sequence = 0, region = 0, offset = 0;
  for (const auto size : partSizes(intervalSequenceNumElements(regions), grainSize, maxPartitions,
                                   minElementsPerPartition, maxElementsPerPartition)) {
    parts.emplace_back();
    for (std::size_t left = size; left != 0;) {
      Regions rest(regions[sequence].begin() + region, regions[sequence].end());
      const auto length = std::min(left, countElements(rest) - offset);
      std::size_t first = 0;
      if (length != 0) parts.back().push_back(takeFront(rest, first, offset, length, maxElementsPerRegion));
      left -= length;
      region += first;
      if (region == regions[sequence].size()) {
        ++sequence;
        region = 0;
      }
    }
  }
  return parts;
}

std::vector<std::vector<Interval>> splitRegionsBetweenWorkers(const poplar::Target &target,
                                                              const std::vector<Interval> &regions, unsigned grainSize,
                                                              unsigned minElementsPerPartition,
                                                              unsigned maxElementsPerPartition,
                                                              unsigned maxElementsPerRegion) {
  return splitRegions(regions, grainSize, target.getNumWorkerContexts(), minElementsPerPartition,
                      maxElementsPerPartition, maxElementsPerRegion);
}

std::vector<std::vector<std::vector<Interval>>> splitRegionsBetweenWorkers(
    const poplar::Target &target, const std::vector<std::vector<Interval>> &regions, unsigned grainSize,
    unsigned minElementsPerPartition, unsigned maxElementsPerPartition, unsigned maxElementsPerRegion) {
  return splitRegions(regions, grainSize, target.getNumWorkerContexts(), minElementsPerPartition,
                      maxElementsPerPartition, maxElementsPerRegion);
}

std::vector<Interval> calculateUnshufflingIntervals(const std::vector<Interval> &intervals) {
  std::vector<std::pair<Interval, std::size_t>> placed;
  std::size_t position = 0;
  for (const auto &interval : intervals) {
    placed.emplace_back(interval, position);
    position += interval.size();
  }
  std::sort(placed.begin(), placed.end());
  Regions result;
  for (const auto &[interval, begin] : placed) result.emplace_back(begin, begin + interval.size());
  return result;
}

}  // namespace poputil
