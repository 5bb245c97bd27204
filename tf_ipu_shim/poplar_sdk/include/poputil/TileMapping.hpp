// Places tensors on tiles. The linear mapping splits the flattened tensor into one range for each tile, in tile order.
// Ranges are multiples of the grain, as even as possible, and at least the minimum long.
#ifndef poputil_TileMapping_hpp
#define poputil_TileMapping_hpp

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/TensorCloneMethod.hpp>
#include <utility>
#include <vector>

namespace poputil {

std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Graph &graph,
                                                                 std::vector<std::size_t> shape,
                                                                 unsigned minElementsPerTile, unsigned grainSize,
                                                                 unsigned offset = 0, bool ascendingOrder = true);

std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Target &target,
                                                                 std::vector<std::size_t> shape,
                                                                 unsigned minElementsPerTile, unsigned grainSize,
                                                                 unsigned offset = 0, bool ascendingOrder = true);

// Without a grain: the vector width of the type, and at least 128 bytes on a tile.
std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Graph &graph, const poplar::Tensor &t,
                                                                 unsigned offset = 0, bool ascendingOrder = true);

std::vector<std::vector<poplar::Interval>> calcLinearTileMapping(const poplar::Target &target,
                                                                 const std::vector<std::size_t> shape,
                                                                 poplar::Type elementType, unsigned offset = 0,
                                                                 bool ascendingOrder = true);

// Also the tile after the last one used.
std::pair<poplar::Graph::TileToTensorMapping, unsigned> calcLinearTileMappingAndNewOffset(const poplar::Graph &graph,
                                                                                          const poplar::Tensor &t,
                                                                                          unsigned offset = 0);

void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &t, unsigned minElementsPerTile, unsigned grainSize);

void mapTensorLinearly(poplar::Graph &graph, const poplar::Tensor &t);

void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &t, unsigned minElementsPerTile,
                                 unsigned grainSize, unsigned offset, bool ascendingOrder = true);

void mapTensorLinearlyWithOffset(poplar::Graph &graph, const poplar::Tensor &t, unsigned offset = 0,
                                 bool ascendingOrder = true);

// A start tile that depends on the shape, so that tensors of different shapes do not all begin at tile 0.
std::size_t chooseMappingOffset(std::size_t numTiles, const std::vector<std::size_t> &shape);
std::size_t chooseMappingOffset(std::size_t numTiles, const std::vector<std::size_t> &shape, std::size_t seed);

// The elements of the fullest tile above those of an even mapping.
unsigned getTileImbalance(const poplar::Graph::TileToTensorMapping &mapping, unsigned minElementsPerTile = 0,
                          unsigned grainSize = 1);
unsigned getTileImbalance(const poplar::Graph &graph, const poplar::Tensor &t, unsigned minElementsPerTile = 0,
                          unsigned grainSize = 1);

// A clone on another IPU, at the same tiles of that IPU.
poplar::Tensor cloneToIpu(
    poplar::Graph &graph, const poplar::Tensor &t, unsigned dstIPU, const poplar::DebugContext &debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

// A clone in another graph of the same device, at the same tiles of that graph.
poplar::Tensor cloneToGraph(
    poplar::Graph &srcGraph, poplar::Graph &dstGraph, const poplar::Tensor &t,
    const poplar::DebugContext &debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

// A clone without aliases, mapped linearly from tile `offset`, and the tile after its last.
std::pair<poplar::Tensor, unsigned> cloneAndExpandAliasing(poplar::Graph &graph, const poplar::Tensor &t,
                                                           unsigned offset = 0,
                                                           const poplar::DebugContext &debugContext = {});

// cloneToIpu() and a copy into the clone.
poplar::Tensor copyToIpu(
    poplar::Graph &masterGraph, const poplar::Tensor &t, poplar::program::Sequence &prog, unsigned dstIPU,
    const poplar::DebugContext &debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

// cloneToIpu() with the tensors between which the caller copies.
poplar::Tensor createIpuCopy(
    poplar::Graph &graph, const poplar::Tensor &t, unsigned dstIpu, poplar::Tensor &copySrc, poplar::Tensor &copyDst,
    const poplar::DebugContext &debugContext = {},
    poplar::TensorCloneMethod method = poplar::TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES);

bool dimIsSplitOverTiles(const poplar::Graph &graph, const poplar::Tensor &t, unsigned dimension);
bool dimIsSplitOverIPUs(const poplar::Graph &graph, const poplar::Tensor &t, unsigned dimension);

// A vector as long as dimension `dim` of `fullTensor`, mapped linearly.
poplar::Tensor createBroadcastOperand(poplar::Graph &graph, const poplar::Tensor &fullTensor, const poplar::Type &type,
                                      unsigned dim, bool ditherMapping = false,
                                      const poplar::DebugContext &debugContext = {});

// The tile at which the `tile`th range of a linear mapping lies, and the reverse.
unsigned transformTileIndex(unsigned tile, unsigned numTiles, unsigned offset, bool ascending);
unsigned invTransformTileIndex(unsigned tile, unsigned numTiles, unsigned offset, bool ascending);

}  // namespace poputil

#endif
