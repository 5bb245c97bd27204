// Chooses tiles for communication and for compute.
#ifndef gcl_TileAllocation_hpp
#define gcl_TileAllocation_hpp

#include <poplar/Graph.hpp>
#include <vector>

namespace gcl {

// The smallest number of tiles for input and output.
unsigned getMinIoTiles(const poplar::Graph &graph);

// The numbers of `count` tiles of each IPU, from `offset` on.
std::vector<unsigned> perIPUTiles(const poplar::Graph &graph, unsigned offset, unsigned count, bool sorted = true);

}  // namespace gcl

#endif
