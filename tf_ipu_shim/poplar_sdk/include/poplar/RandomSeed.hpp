// The state of the random generators, {tiles, workers, 4} words: of functions that draw without a seed. Writing what was
// read before makes them draw the same again.
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
