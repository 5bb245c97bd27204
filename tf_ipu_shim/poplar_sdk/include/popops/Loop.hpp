// Builds loops with a counter, up to a constant or to a limit in a tensor.
#ifndef popops_Loop_hpp
#define popops_Loop_hpp

#include <functional>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popops {

// Builds the body for the counter, an unsigned integer of shape {1}.
using CountedLoopBodyType = std::function<poplar::program::Program(const poplar::Tensor &)>;

// Runs the body with a counter from begin to below end:
//
//   for (unsigned i = begin; i < end; i += step) {
//     body(i);
//   }
poplar::program::Sequence countedLoop(poplar::Graph &graph, std::size_t begin, std::size_t end, size_t step,
                                      const CountedLoopBodyType &body, const poplar::DebugContext &debugContext = {});

poplar::program::Sequence countedLoop(poplar::Graph &graph, std::size_t count, const CountedLoopBodyType &body,
                                      const poplar::DebugContext &debugContext = {});

// A loop whose limit is a tensor, read when the loop runs:
//
//   for (count = initialCount; count != countLimit; count += countStep) {
//     body;
//   }
poplar::program::Sequence countedForLoop(poplar::Graph &graph, const poplar::Tensor &count, int initialCount,
                                         const poplar::Tensor &countLimit, int countStep,
                                         const poplar::program::Program &body,
                                         const poplar::DebugContext &debugContext = {});

// countedForLoop() that creates the counter.
poplar::program::Sequence countedForLoop(poplar::Graph &graph, int initialCount, const poplar::Tensor &countLimit,
                                         int countStep, const poplar::program::Program &body,
                                         const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
