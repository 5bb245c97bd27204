// Counts the elements of tensors by their values (histograms).
#ifndef popops_GatherStatistics_hpp
#define popops_GatherStatistics_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>

namespace popops {

// Counts the elements of `input` (float or half) between `levels`, a sorted vector of its type. The first count is of
// elements below the first level, the last of those from the last level on. Counts are unsigned int, or float with the
// option useFloatArithmetic.
poplar::Tensor histogram(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &levels,
                         bool absoluteOfInput, poplar::program::Sequence &prog,
                         const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {});

// The counts are written to `output`, or added to it. Its type may be float without an option.
void histogram(poplar::Graph &graph, const poplar::Tensor &input, poplar::Tensor &output, bool updateOutput,
               const poplar::Tensor &levels, bool absoluteOfInput, poplar::program::Sequence &prog,
               const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {});

}  // namespace popops

#endif
