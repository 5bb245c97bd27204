// Reads and writes the random generators' state, {tiles, workers, 4} words. Functions without a seed draw from it. If
// an earlier state is written back, they draw the same numbers again.
#ifndef poplar_RandomSeed_hpp
#define poplar_RandomSeed_hpp

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace poplar {

Tensor getHwSeeds(Graph& graph, program::Sequence& program, const DebugContext& context = {});
void setHwSeeds(Graph& graph, const Tensor& seeds, program::Sequence& program, const DebugContext& context = {});

}  // namespace poplar

#endif
