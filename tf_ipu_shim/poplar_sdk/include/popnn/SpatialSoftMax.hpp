// The expected coordinates of fields.
#ifndef popnn_SpatialSoftMax_hpp
#define popnn_SpatialSoftMax_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <utility>

namespace popnn {

// For fields {F, H, W} the tensor {F, 2} of the expected row and column, each from -1 to 1, under the softmax of a field
// divided by the temperature; and the temperature's variable, a scalar. With disableSoftmax the fields are probabilities.
std::pair<poplar::Tensor, poplar::Tensor> spatialSoftMax2D(poplar::Graph &graph, poplar::program::Sequence &prog,
                                                           const poplar::Tensor &fields, float temperature,
                                                           bool disableSoftmax = false,
                                                           const poplar::DebugContext &debugContext = {});

}  // namespace popnn

#endif
