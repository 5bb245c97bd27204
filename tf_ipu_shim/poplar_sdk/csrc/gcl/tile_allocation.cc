// Chooses tiles for communication and for compute, each a range of consecutive tiles.
#include <gcl/TileAllocation.hpp>
#include <numeric>

#include "poputil/library.hpp"

namespace gcl {

unsigned getMinIoTiles(const poplar::Graph &) { return 32; }

std::vector<unsigned> perIPUTiles(const poplar::Graph &graph, unsigned offset, unsigned count, bool) {
  const unsigned tiles = graph.getTarget().getTilesPerIPU();
  if (offset > tiles || count > tiles - offset)
    poputil::detail::fail("gcl::perIPUTiles", std::to_string(count) + " tiles from tile " + std::to_string(offset) +
                          " on were asked for; an IPU of this graph has " + std::to_string(tiles),
                          "Ask for fewer tiles");
  std::vector<unsigned> found(count);
  std::iota(found.begin(), found.end(), offset);
  return found;
}

}  // namespace gcl
