// Features weighted by B-splines, for graph networks.
#ifndef popops_SplineWeighting_hpp
#define popops_SplineWeighting_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

namespace popops {

// The sum over splines s of basis[edge, s] * input[edge] * weight[weightIndex[edge, s]]: {edges, output channels}, for a
// weight {places, input channels, output channels}.
poplar::Tensor splineWeighting(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &weight,
                               const poplar::Tensor &basis, const poplar::Tensor &weightIndex,
                               poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
