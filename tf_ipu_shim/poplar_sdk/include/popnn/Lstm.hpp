// Creates and runs long short-term memory layers (LSTM), and computes their gradients.
//
// The gates f, i, o and the candidate g are activations of x W + h U + b. The cell state is c' = f c + i g, and the
// output h' = o act(c'). Sequences are {steps, batch, size}. Weights are {4, input, output} and {4, output, output},
// biases {4, output}, in the order of `cellOrder`. Activations are SIGMOID, HARD_SIGMOID, RELU, TANH or a softmax.
//
// If a sequence has fewer steps, later outputs are 0 and its state does not change. The last state and output are those
// of its last step with `preserveFinalState`, or with one number of steps for all; otherwise they are 0.
#ifndef popnn_Lstm_hpp
#define popnn_Lstm_hpp

#include <cstdint>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/PlanningCache.hpp>
#include <popnn/LstmDef.hpp>
#include <popnn/Rnn.hpp>
#include <utility>
#include <vector>

namespace popnn {
namespace lstm {

const std::vector<BasicLstmCellUnit> getDefaultBasicLstmCellOrder();

struct LstmParams : rnn::detail::LayerParams {
  using LayerParams::LayerParams;

  bool doInputWeightCalc = true;  // without it, the input has no part in the gates
  bool preserveFinalState = false;
  std::vector<BasicLstmCellUnit> cellOrder = getDefaultBasicLstmCellOrder();
};

// The state of a cell, or its gradients: two tensors {batch, output}.
struct LstmState {
  poplar::Tensor output;
  poplar::Tensor cellState;

  poplar::Tensor getAsTensor() const;
};

struct LstmWeights : rnn::detail::LayerWeights {};

std::uint64_t getBasicLstmCellFwdFlops(const LstmParams &params);
std::uint64_t getBasicLstmCellBwdFlops(const LstmParams &params);
std::uint64_t getBasicLstmCellWuFlops(const LstmParams &params);

poplar::Tensor createInput(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &debugContext,
                           const poplar::OptionFlags &options = {}, poplin::PlanningCache *planningCache = nullptr);
poplar::Tensor createInitialOutput(poplar::Graph &graph, const LstmParams &params,
                                   const poplar::DebugContext &debugContext, const poplar::OptionFlags &options = {},
                                   poplin::PlanningCache *planningCache = nullptr);
poplar::Tensor createInitialCellState(poplar::Graph &graph, const LstmParams &params,
                                      const poplar::DebugContext &debugContext,
                                      const poplar::OptionFlags &options = {},
                                      poplin::PlanningCache *planningCache = nullptr);
LstmState createInitialState(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &debugContext,
                             const poplar::OptionFlags &options = {}, poplin::PlanningCache *planningCache = nullptr);
void zeroInitialState(poplar::Graph &graph, const LstmState &initialState, poplar::program::Sequence &prog,
                      const poplar::DebugContext &debugContext = {});
// The weights of the input and of the output.
std::pair<poplar::Tensor, poplar::Tensor> createWeightsKernel(poplar::Graph &graph, const LstmParams &params,
                                                              const poplar::DebugContext &debugContext,
                                                              const poplar::OptionFlags &options = {},
                                                              poplin::PlanningCache *planningCache = nullptr);
poplar::Tensor createWeightsBiases(poplar::Graph &graph, const LstmParams &params,
                                   const poplar::DebugContext &debugContext, const poplar::OptionFlags &options = {},
                                   poplin::PlanningCache *planningCache = nullptr);
LstmWeights createWeights(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &debugContext,
                          const poplar::OptionFlags &options = {}, poplin::PlanningCache *planningCache = nullptr);

// The outputs, or the last one, and the last cell state. `intermediates` is set to what the gradients need, unless null.
std::pair<poplar::Tensor, poplar::Tensor> lstmFwd(poplar::Graph &graph, const LstmParams &params,
                                                  const LstmState &stateInit, const poplar::Tensor &in,
                                                  const LstmWeights &weights, poplar::Tensor *intermediates,
                                                  poplar::program::Sequence &fwdProg,
                                                  const poplar::DebugContext &debugContext = {},
                                                  const poplar::OptionFlags &options = {},
                                                  poplin::PlanningCache *planningCache = nullptr);

// The gradient of the initial state. With variable steps, the gradient of the last state counts as 0. `inputGrad` and
// `bwdIntermediates` are set unless null.
LstmState lstmBwd(poplar::Graph &graph, const LstmParams &params, poplar::program::Sequence &prog,
                  const LstmState &fwdStateInit, const poplar::Tensor &fwdIntermediates, const LstmWeights &weights,
                  const poplar::Tensor &input, const poplar::Tensor &output, const poplar::Tensor &outputGrad,
                  const LstmState *lastStepStateGrad, poplar::Tensor *inputGrad, poplar::Tensor *bwdIntermediates,
                  const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
                  poplin::PlanningCache *planningCache = nullptr);
LstmState lstmBwd(poplar::Graph &graph, const LstmParams &params, poplar::program::Sequence &prog,
                  const LstmState &fwdStateInit, const poplar::Tensor &fwdIntermediates, const LstmWeights &weights,
                  const poplar::Tensor &input, const poplar::Tensor &output, const poplar::Tensor &outputGrad,
                  const poplar::Tensor *lastCellStateGrad, poplar::Tensor *inputGrad,
                  poplar::Tensor *bwdIntermediates, const poplar::DebugContext &debugContext = {},
                  const poplar::OptionFlags &options = {}, poplin::PlanningCache *planningCache = nullptr);

// The gradients of the weights.
LstmWeights lstmWU(poplar::Graph &graph, const LstmParams &params, poplar::program::Sequence &prog,
                   const LstmState &fwdStateInit, const poplar::Tensor &fwdIntermediates,
                   const poplar::Tensor &bwdIntermediates, const LstmWeights &weights, const poplar::Tensor &input,
                   const poplar::Tensor &output, const poplar::DebugContext &debugContext = {},
                   const poplar::OptionFlags &options = {}, poplin::PlanningCache *planningCache = nullptr);

// lstmBwd() and lstmWU().
LstmState lstmBwdWithWU(poplar::Graph &graph, const LstmParams &params, poplar::program::Sequence &prog,
                        const LstmState &fwdStateInit, const poplar::Tensor &fwdIntermediates,
                        const LstmWeights &weights, const poplar::Tensor &input, const poplar::Tensor &output,
                        const poplar::Tensor &outputGrad, const LstmState *lastStepStateGrad,
                        poplar::Tensor *inputGrad, LstmWeights &weightsGrad,
                        const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
                        poplin::PlanningCache *planningCache = nullptr);
LstmState lstmBwdWithWU(poplar::Graph &graph, const LstmParams &params, poplar::program::Sequence &prog,
                        const LstmState &fwdStateInit, const poplar::Tensor &fwdIntermediates,
                        const LstmWeights &weights, const poplar::Tensor &input, const poplar::Tensor &output,
                        const poplar::Tensor &outputGrad, const poplar::Tensor *lastCellStateGrad,
                        poplar::Tensor *inputGrad, LstmWeights &weightsGrad,
                        const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
                        poplin::PlanningCache *planningCache = nullptr);

}  // namespace lstm
}  // namespace popnn

#endif
