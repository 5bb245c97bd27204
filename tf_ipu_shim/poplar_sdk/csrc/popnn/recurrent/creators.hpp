// A macro that defines an LSTM's or GRU's functions that create tensors and count floating-point operations.
#ifndef tf_ipu_shim_popnn_recurrent_creators_hpp
#define tf_ipu_shim_popnn_recurrent_creators_hpp

#include "popnn/recurrent/steps.hpp"

namespace popnn::recurrent {

inline Tensor create(poplar::Graph &graph, const Layer &layer, const Shape &shape,
                     const poplar::DebugContext &debugContext) {
  return poputil::detail::createLinear(graph, layer.type, shape, debugContext);
}

}  // namespace popnn::recurrent

// Kind is Lstm or Gru. The namespace has layerOf(function, params, options) and biasesShape(layer, params).
#define POPNN_RECURRENT_CREATORS(space, Kind)                                                                         \
  std::uint64_t getBasic##Kind##CellFwdFlops(const Kind##Params &params) {                                            \
    return recurrent::flopsOf(layerOf("popnn::" #space "::getBasic" #Kind "CellFwdFlops", params, {}));               \
  }                                                                                                                   \
  std::uint64_t getBasic##Kind##CellBwdFlops(const Kind##Params &params) {                                            \
    return getBasic##Kind##CellFwdFlops(params);                                                                      \
  }                                                                                                                   \
  std::uint64_t getBasic##Kind##CellWuFlops(const Kind##Params &params) {                                             \
    return getBasic##Kind##CellFwdFlops(params);                                                                      \
  }                                                                                                                   \
                                                                                                                      \
  Tensor createInput(poplar::Graph &graph, const Kind##Params &params, const poplar::DebugContext &debugContext,      \
                     const OptionFlags &options, poplin::PlanningCache *) {                                           \
    const auto layer = layerOf("popnn::" #space "::createInput", params, options);                                    \
    return recurrent::create(graph, layer, layer.inputShape(), debugContext);                                         \
  }                                                                                                                   \
                                                                                                                      \
  std::pair<Tensor, Tensor> createWeightsKernel(poplar::Graph &graph, const Kind##Params &params,                     \
                                                const poplar::DebugContext &debugContext, const OptionFlags &options, \
                                                poplin::PlanningCache *) {                                            \
    const auto layer = layerOf("popnn::" #space "::createWeightsKernel", params, options);                            \
    return {recurrent::create(graph, layer, layer.weightsShape(layer.inputs), {debugContext, "inputWeights"}),        \
            recurrent::create(graph, layer, layer.weightsShape(layer.outputs), {debugContext, "outputWeights"})};     \
  }                                                                                                                   \
                                                                                                                      \
  Tensor createWeightsBiases(poplar::Graph &graph, const Kind##Params &params,                                        \
                             const poplar::DebugContext &debugContext, const OptionFlags &options,                    \
                             poplin::PlanningCache *) {                                                               \
    const auto layer = layerOf("popnn::" #space "::createWeightsBiases", params, options);                            \
    return recurrent::create(graph, layer, biasesShape(layer, params), {debugContext, "biases"});                     \
  }                                                                                                                   \
                                                                                                                      \
  Kind##Weights createWeights(poplar::Graph &graph, const Kind##Params &params,                                       \
                              const poplar::DebugContext &debugContext, const OptionFlags &options,                   \
                              poplin::PlanningCache *cache) {                                                         \
    const auto kernel = createWeightsKernel(graph, params, debugContext, options, cache);                             \
    return {kernel.first, kernel.second, createWeightsBiases(graph, params, debugContext, options, cache)};           \
  }

#endif
