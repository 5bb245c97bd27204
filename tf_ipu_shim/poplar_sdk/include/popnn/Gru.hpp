// Creates and runs gated recurrent layers (GRU), and computes their gradients.
//
// Both gates r and u are the recurrent activation of x W + h U + b. The candidate is c = act(x W + (r h) U + b), and the
// output h' = u h + (1 - u) c. With `resetAfter` the candidate is c = act(x W + b + r (h U + b')). Biases are then {3,
// 2, output}, those of the input first.
//
// Sequences are {steps, batch, size}. Weights are {3, input, output} and {3, output, output}, biases {3, output}, in the
// order of `cellOrder`. Activations are SIGMOID, HARD_SIGMOID, RELU, TANH or a softmax. If a sequence has fewer steps,
// later outputs are 0 and its state does not change: the last output is that of its last step.
#ifndef popnn_Gru_hpp
#define popnn_Gru_hpp

#include <cstdint>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/PlanningCache.hpp>
#include <popnn/GruDef.hpp>
#include <popnn/Rnn.hpp>
#include <utility>
#include <vector>

namespace popnn {
namespace gru {

const std::vector<BasicGruCellUnit> getDefaultBasicGruCellOrder();

struct GruParams : rnn::detail::LayerParams {
  using LayerParams::LayerParams;

  std::vector<BasicGruCellUnit> cellOrder = getDefaultBasicGruCellOrder();
  bool resetAfter = false;
};

struct GruWeights : rnn::detail::LayerWeights {};

std::uint64_t getBasicGruCellFwdFlops(const GruParams &params);
std::uint64_t getBasicGruCellBwdFlops(const GruParams &params);
std::uint64_t getBasicGruCellWuFlops(const GruParams &params);

poplar::Tensor createInput(poplar::Graph &graph, const GruParams &params, const poplar::DebugContext &debugContext,
                           const poplar::OptionFlags &options = {}, poplin::PlanningCache *planningCache = nullptr);
poplar::Tensor createInitialState(poplar::Graph &graph, const GruParams &params,
                                  const poplar::DebugContext &debugContext, const poplar::OptionFlags &options,
                                  poplin::PlanningCache *cache);
// The weights of the input and of the output.
std::pair<poplar::Tensor, poplar::Tensor> createWeightsKernel(poplar::Graph &graph, const GruParams &params,
                                                              const poplar::DebugContext &debugContext,
                                                              const poplar::OptionFlags &options = {},
                                                              poplin::PlanningCache *planningCache = nullptr);
poplar::Tensor createWeightsBiases(poplar::Graph &graph, const GruParams &params,
                                   const poplar::DebugContext &debugContext, const poplar::OptionFlags &options = {},
                                   poplin::PlanningCache *planningCache = nullptr);
GruWeights createWeights(poplar::Graph &graph, const GruParams &params, const poplar::DebugContext &debugContext,
                         const poplar::OptionFlags &options = {}, poplin::PlanningCache *planningCache = nullptr);

// The outputs, or the last one. `intermediates` is set to what the gradients need, unless null.
poplar::Tensor gruFwd(poplar::Graph &graph, const GruParams &params, const poplar::Tensor &stateInit,
                      const poplar::Tensor &in, const GruWeights &weights, poplar::Tensor *intermediates,
                      poplar::program::Sequence &fwdProg, const poplar::DebugContext &debugContext = {},
                      const poplar::OptionFlags &options = {}, poplin::PlanningCache *planningCache = nullptr);
// With the number of steps of each sequence.
poplar::Tensor gruFwd(poplar::Graph &graph, const GruParams &params, const poplar::Tensor &stateInit,
                      const poplar::Tensor &in, const poplar::Tensor &realTimeSteps, const GruWeights &weights,
                      poplar::Tensor *intermediates, poplar::program::Sequence &fwdProg,
                      const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
                      poplin::PlanningCache *planningCache = nullptr);

// The gradient of the initial state. `inputGrad` and `bwdIntermediates` are set unless null.
poplar::Tensor gruBwd(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog,
                      const poplar::Tensor &fwdOutputInit, const poplar::Tensor &fwdIntermediatesSeq,
                      const GruWeights &weights, const poplar::Tensor &fwdInputSeq, const poplar::Tensor &fwdOutput,
                      const poplar::Tensor &gradLayerNext, poplar::Tensor *inputGrad,
                      poplar::Tensor *bwdIntermediates, const poplar::DebugContext &debugContext,
                      const poplar::OptionFlags &options_, poplin::PlanningCache *planningCache);
poplar::Tensor gruBwd(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog,
                      const poplar::Tensor &fwdOutputInit, const poplar::Tensor &fwdIntermediatesSeq,
                      const GruWeights &weights, const poplar::Tensor &fwdInputSeq,
                      const poplar::Tensor &realTimeSteps, const poplar::Tensor &fwdOutput,
                      const poplar::Tensor &gradLayerNext, poplar::Tensor *inputGrad,
                      poplar::Tensor *bwdIntermediates, const poplar::DebugContext &debugContext,
                      const poplar::OptionFlags &options_, poplin::PlanningCache *planningCache);

// The gradients of the weights.
GruWeights gruWU(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog,
                 const poplar::Tensor &fwdOutputInit, const poplar::Tensor &fwdIntermediates,
                 const poplar::Tensor &bwdIntermediates, const GruWeights &weights, const poplar::Tensor &input,
                 const poplar::Tensor &output, const poplar::DebugContext &debugContext,
                 const poplar::OptionFlags &options_, poplin::PlanningCache *planningCache);

// gruBwd() and gruWU().
poplar::Tensor gruBwdWithWU(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog,
                            const poplar::Tensor &fwdOutputInit, const poplar::Tensor &fwdIntermediates,
                            const GruWeights &weights, const poplar::Tensor &input, const poplar::Tensor &output,
                            const poplar::Tensor &outputGrad, poplar::Tensor *inputGrad, GruWeights &weightsGrad,
                            const poplar::DebugContext &debugContext, const poplar::OptionFlags &options_,
                            poplin::PlanningCache *planningCache);
poplar::Tensor gruBwdWithWU(poplar::Graph &graph, const GruParams &params, poplar::program::Sequence &prog,
                            const poplar::Tensor &fwdOutputInit, const poplar::Tensor &fwdIntermediates,
                            const GruWeights &weights, const poplar::Tensor &input,
                            const poplar::Tensor &realTimeSteps, const poplar::Tensor &output,
                            const poplar::Tensor &outputGrad, poplar::Tensor *inputGrad, GruWeights &weightsGrad,
                            const poplar::DebugContext &debugContext, const poplar::OptionFlags &options_,
                            poplin::PlanningCache *planningCache);

}  // namespace gru
}  // namespace popnn

#endif
