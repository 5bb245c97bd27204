// Copies ranges of consecutive rows from one tensor to another, at offsets read when the program runs.
#ifndef popops_SequenceSlice_hpp
#define popops_SequenceSlice_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popops {

// tOut[tOutOffset[i] : tOutOffset[i] + tN[i]] = tIn[tInOffset[i] : tInOffset[i] + tN[i]] for each i; rows outside of a
// tensor are left out. `zeroUnused` sets the other rows of tOut to zero.
void sequenceSlice(poplar::Graph &graph, const poplar::Tensor &tIn, const poplar::Tensor &tOut,
                   const poplar::Tensor &tN, const poplar::Tensor &tInOffset, const poplar::Tensor &tOutOffset,
                   bool zeroUnused, poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
