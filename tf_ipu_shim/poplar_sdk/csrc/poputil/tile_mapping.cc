// Maps tensors linearly to tiles, and clones them to other tiles.
#include <algorithm>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/detail/elements.hpp>

namespace poputil {

namespace {

using Mapping = poplar::Graph::TileToTensorMapping;

// Below this size the exchange of a tile's part costs more than its computation.
constexpr unsigned BYTES_PER_TILE = 128;

unsigned minimumElements(const poplar::Target &target, const poplar::Type &type) {
  return std::max<unsigned>(BYTES_PER_TILE / target.getTypeSize(type), 1);
}

Mapping moveToIpu(const poplar::Graph &graph, const Mapping &mapping, unsigned ipu) {
  const auto tiles = graph.getTarget().getTilesPerIPU();
  if (ipu >= graph.getTarget().getNumIPUs())
    detail::fail("cloneToIpu", "dstIPU is " + std::to_string(ipu) + "; expected less than " +
                 std::to_string(graph.getTarget().getNumIPUs()), "Pass an IPU of the target");
  Mapping moved(graph.getTarget().getNumTiles());
  for (std::size_t tile = 0; tile != mapping.size(); ++tile) {
    auto &regions = moved[ipu * tiles + tile % tiles];
    regions.insert(regions.end(), mapping[tile].begin(), mapping[tile].end());
  }
  return moved;
}

// Whether the elements at one index of the dimension lie on several of `places`, tiles or IPUs.
bool isSplit(const poplar::Graph &graph, const poplar::Tensor &t, unsigned dimension, unsigned tilesPerPlace) {
  const auto mapping = graph.getTileMapping(t);
  const auto shape = t.shape();
  std::size_t inner = 1;
  for (std::size_t dim = dimension + 1; dim < shape.size(); ++dim) inner *= shape[dim];
  // The place of the first element of each line along the dimension.
  std::vector<std::size_t> places(t.numElements() / std::max<std::size_t>(t.dim(dimension), 1), ~std::size_t(0));
  for (std::size_t tile = 0; tile != mapping.size(); ++tile) {
    for (const auto &region : mapping[tile]) {
      for (auto i = region.begin(); i != region.end(); ++i) {
        auto &place = places[i / (inner * shape[dimension]) * inner + i % inner];
        if (place == ~std::size_t(0)) place = tile / tilesPerPlace;
        if (place != tile / tilesPerPlace) return true;
      }
    }
  }
  return false;
}

}  // namespace

unsigned transformTileIndex(unsigned tile, unsigned numTiles, unsigned offset, bool ascending) {
  const unsigned moved = (tile + offset) % numTiles;
  return ascending ? moved : numTiles - 1 - moved;
}

unsigned invTransformTileIndex(unsigned tile, unsigned numTiles, unsigned offset, bool ascending) {
  const unsigned moved = ascending ? tile : numTiles - 1 - tile;
  return (moved + numTiles - offset % numTiles) % numTiles;
}

Mapping calcLinearTileMapping(const poplar::Target &target, std::vector<std::size_t> shape,
                              unsigned minElementsPerTile, unsigned grainSize, unsigned offset, bool ascendingOrder) {
  const auto tiles = target.getNumTiles();
  const std::vector<poplar::Interval> all{{0, detail::product(shape)}};
  const auto parts = splitRegions(all, grainSize, tiles, minElementsPerTile);
  Mapping mapping(tiles);
  for (unsigned part = 0; part != parts.size(); ++part)
    mapping[transformTileIndex(part, tiles, offset, ascendingOrder)] = parts[part];
  return mapping;
}

Mapping calcLinearTileMapping(const poplar::Graph &graph, std::vector<std::size_t> shape, unsigned minElementsPerTile,
                              unsigned grainSize, unsigned offset, bool ascendingOrder) {
  return calcLinearTileMapping(graph.getTarget(), std::move(shape), minElementsPerTile, grainSize, offset,
                               ascendingOrder);
}

Mapping calcLinearTileMapping(const poplar::Target &target, const std::vector<std::size_t> shape,
                              poplar::Type elementType, unsigned offset, bool ascendingOrder) {
  return calcLinearTileMapping(target, shape, minimumElements(target, elementType), target.getVectorWidth(elementType),
                               offset, ascendingOrder);
}

Mapping calcLinearTileMapping(const poplar::Graph &graph, const poplar::Tensor &t, unsigned offset,
                              bool ascendingOrder) {
  return calcLinearTileMapping(graph.getTarget(), t.shape(), t.elementType(), offset, ascendingOrder);
}

std::pair<Mapping, unsigned> calcLinearTileMappingAndNewOffset(const poplar::Graph &graph, const poplar::Tensor &t,
                                                               unsigned offset) {
  auto mapping = calcLinearTileMapping(graph, t, offset);
  const auto used = std::count_if(mapping.begin(), mapping.end(), [](const auto &regions) { return !regions.empty(); });
  return {std::move(mapping), (offset + used) % graph.getTarget().getNumTiles()};
}

void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &t, unsigned minElementsPerTile,
                       unsigned grainSize) {
  mapTensorLinearlyWithOffset(graph, t, minElementsPerTile, grainSize, 0);
}

void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &t) { mapTensorLinearlyWithOffset(graph, t, 0); }

void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &t, unsigned minElementsPerTile,
                                 unsigned grainSize, unsigned offset, bool ascendingOrder) {
  graph.setTileMapping(
      t, calcLinearTileMapping(graph, t.shape(), minElementsPerTile, grainSize, offset, ascendingOrder));
}

void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &t, unsigned offset, bool ascendingOrder) {
  graph.setTileMapping(t, calcLinearTileMapping(graph, t, offset, ascendingOrder));
}

std::size_t chooseMappingOffset(std::size_t numTiles, const std::vector<std::size_t> &shape) {
  return chooseMappingOffset(numTiles, shape, 0);
}

std::size_t chooseMappingOffset(std::size_t numTiles, const std::vector<std::size_t> &shape, std::size_t seed) {
  if (numTiles == 0) detail::fail("chooseMappingOffset", "there are 0 tiles", "Pass the tiles of the target");
  constexpr std::size_t FNV_PRIME = 0x100000001b3;
  for (const auto size : shape) seed = (seed ^ size) * FNV_PRIME;
  return seed % numTiles;
}

unsigned getTileImbalance(const Mapping &mapping, unsigned minElementsPerTile, unsigned grainSize) {
  std::size_t total = 0, fullest = 0;
  for (const auto &regions : mapping) {
    std::size_t elements = 0;
    for (const auto &region : regions) elements += region.size();
    total += elements;
    fullest = std::max(fullest, elements);
  }
  std::size_t even = 0;
  for (const auto &part : splitRegions(std::vector<poplar::Interval>{{0, total}}, grainSize, mapping.size(),
                                       minElementsPerTile))
    even = std::max(even, part.front().size());
  return fullest > even ? fullest - even : 0;
}

unsigned getTileImbalance(const poplar::Graph &graph, const poplar::Tensor &t, unsigned minElementsPerTile,
                          unsigned grainSize) {
  return getTileImbalance(graph.getTileMapping(t), minElementsPerTile, grainSize);
}

poplar::Tensor cloneToIpu(poplar::Graph &graph, const poplar::Tensor &t, unsigned dstIPU,
                          const poplar::DebugContext &debugContext, poplar::TensorCloneMethod method) {
  const auto out = graph.clone(t, debugContext, method);
  graph.setTileMapping(out, moveToIpu(graph, graph.getTileMapping(t), dstIPU));
  return out;
}

poplar::Tensor cloneToGraph(poplar::Graph &srcGraph, poplar::Graph &dstGraph, const poplar::Tensor &t,
                            const poplar::DebugContext &debugContext, poplar::TensorCloneMethod method) {
  const auto out = dstGraph.clone(t, debugContext, method);
  const auto mapping = srcGraph.getTileMapping(t);
  Mapping moved(dstGraph.getTarget().getNumTiles());
  for (std::size_t tile = 0; tile != mapping.size(); ++tile) {
    auto &regions = moved[tile % moved.size()];
    regions.insert(regions.end(), mapping[tile].begin(), mapping[tile].end());
  }
  dstGraph.setTileMapping(out, moved);
  return out;
}

std::pair<poplar::Tensor, unsigned> cloneAndExpandAliasing(poplar::Graph &graph, const poplar::Tensor &t,
                                                           unsigned offset, const poplar::DebugContext &debugContext) {
  const auto out = graph.addVariable(t.elementType(), t.shape(), debugContext);
  auto [mapping, next] = calcLinearTileMappingAndNewOffset(graph, out, offset);
  graph.setTileMapping(out, mapping);
  return {out, next};
}

poplar::Tensor copyToIpu(poplar::Graph &masterGraph, const poplar::Tensor &t, poplar::program::Sequence &prog,
                         unsigned dstIPU, const poplar::DebugContext &debugContext, poplar::TensorCloneMethod method) {
  const auto out = cloneToIpu(masterGraph, t, dstIPU, debugContext, method);
  prog.add(poplar::program::Copy(t, out, false, debugContext));
  return out;
}

poplar::Tensor createIpuCopy(poplar::Graph &graph, const poplar::Tensor &t, unsigned dstIpu, poplar::Tensor &copySrc,
                             poplar::Tensor &copyDst, const poplar::DebugContext &debugContext,
                             poplar::TensorCloneMethod method) {
  copySrc = t;
  copyDst = cloneToIpu(graph, t, dstIpu, debugContext, method);
  return copyDst;
}

bool dimIsSplitOverTiles(const poplar::Graph &graph, const poplar::Tensor &t, unsigned dimension) {
  return isSplit(graph, t, dimension, 1);
}

bool dimIsSplitOverIPUs(const poplar::Graph &graph, const poplar::Tensor &t, unsigned dimension) {
  return isSplit(graph, t, dimension, graph.getTarget().getTilesPerIPU());
}

poplar::Tensor createBroadcastOperand(poplar::Graph &graph, const poplar::Tensor &fullTensor, const poplar::Type &type,
                                      unsigned dim, bool ditherMapping, const poplar::DebugContext &debugContext) {
  const auto out = graph.addVariable(type, {fullTensor.dim(dim)}, debugContext);
  const auto tiles = graph.getTarget().getNumTiles();
  mapTensorLinearlyWithOffset(graph, out, ditherMapping ? chooseMappingOffset(tiles, fullTensor.shape()) : 0);
  return out;
}

}  // namespace poputil
