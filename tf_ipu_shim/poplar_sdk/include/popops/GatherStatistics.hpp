// Histograms.
#ifndef popops_GatherStatistics_hpp
#define popops_GatherStatistics_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>

namespace popops {

// How many elements of `input`, of float or half, lie between `levels`, a sorted vector of its type: less than the first,
// from each level to the next, and from the last on. Counts are unsigned int, or float with the option
// useFloatArithmetic.
poplar::Tensor histogram(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &levels,
                         bool absoluteOfInput, poplar::program::Sequence &prog,
                         const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {});

// The counts are written to `output`, or added to it. Its type may be float without an option.
void histogram(poplar::Graph &graph, const poplar::Tensor &input, poplar::Tensor &output, bool updateOutput,
               const poplar::Tensor &levels, bool absoluteOfInput, poplar::program::Sequence &prog,
               const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {});

}  // namespace popops

#endif
