// Creates the parameters of normalisation layers, gamma and beta, with an element for each channel.
#ifndef popnn_Norms_hpp
#define popnn_Norms_hpp

#include <poplar/Graph.hpp>
#include <utility>

namespace popnn {

poplar::Tensor createNormGamma(poplar::Graph &graph, const poplar::Tensor &acts,
                               const poplar::DebugContext &debugContext = {});
poplar::Tensor createNormBeta(poplar::Graph &graph, const poplar::Tensor &acts,
                              const poplar::DebugContext &debugContext = {});
std::pair<poplar::Tensor, poplar::Tensor> createNormParams(poplar::Graph &graph, const poplar::Tensor acts,
                                                           const poplar::DebugContext &debugContext = {});

}  // namespace popnn

#endif
