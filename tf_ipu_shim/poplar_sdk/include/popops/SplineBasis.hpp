// B-splines at pseudo coordinates of edges, for graph networks.
#ifndef popops_SplineBasis_hpp
#define popops_SplineBasis_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

// Multiplies splines at pseudo {edges, dimensions}. Each edge gets the (degree + 1)^dimensions products that are not
// zero, and the places of their weights. The first dimension varies fastest. A coordinate from 0 to 1 covers
// kernelSize - degree intervals of an open spline, kernelSize of a closed one.
void splineBasis(poplar::Graph &graph, const poplar::Tensor &pseudo, const poplar::Tensor &kernelSize,
                 const poplar::Tensor &isOpenSpline, const poplar::Tensor &basis, const poplar::Tensor &weightIndex,
                 unsigned degree, poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
