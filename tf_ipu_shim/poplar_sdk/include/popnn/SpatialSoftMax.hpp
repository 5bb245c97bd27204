// The expected coordinates of feature maps, under a softmax over their elements.
#ifndef popnn_SpatialSoftMax_hpp
#define popnn_SpatialSoftMax_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <utility>

namespace popnn {

// Returns the tensor {F, 2} of the expected row and column of each field in {F, H, W}, both from -1 to 1. The
// probabilities are the softmax of a field divided by the temperature; with disableSoftmax the fields are
// probabilities. Also returns the temperature's variable, a scalar.
std::pair<poplar::Tensor, poplar::Tensor> spatialSoftMax2D(poplar::Graph &graph, poplar::program::Sequence &prog,
                                                           const poplar::Tensor &fields, float temperature,
                                                           bool disableSoftmax = false,
                                                           const poplar::DebugContext &debugContext = {});

}  // namespace popnn

#endif
