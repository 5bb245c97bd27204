// Computes the logical AND of all elements of a tensor.
#ifndef popops_AllTrue_hpp
#define popops_AllTrue_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popops {

// A scalar of type BOOL; throws poplibs_error for tensors of other types.
poplar::Tensor allTrue(poplar::Graph &graph, poplar::Tensor A, poplar::program::Sequence &prog,
                       const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
