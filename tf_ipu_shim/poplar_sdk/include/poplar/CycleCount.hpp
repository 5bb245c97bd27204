// Counts the cycles of a program, and reads the counter, by the cycle model.
#ifndef poplar_CycleCount_hpp
#define poplar_CycleCount_hpp

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/SyncType.hpp>
#include <poplar/Tensor.hpp>

namespace poplar {

// Two unsigned integers, the lower first: the modelled cycles of the slowest tile in all steps that the program has now.
// A loop whose count is not known counts once. Every tensor and vertex of the program must be mapped before.
Tensor cycleCount(Graph& graph, program::Sequence& program, unsigned tile, SyncType sync,
                  const DebugContext& context = {});
inline Tensor cycleCount(Graph& graph, program::Sequence& program, unsigned tile, const DebugContext& context = {}) {
  return cycleCount(graph, program, tile, SyncType::INTERNAL, context);
}

// The same words: the modelled cycles of all steps that ran before this point since the engine was made, in every loop.
Tensor cycleStamp(Graph& graph, program::Sequence& program, unsigned tile, SyncType sync,
                  const DebugContext& context = {});

}  // namespace poplar

#endif
