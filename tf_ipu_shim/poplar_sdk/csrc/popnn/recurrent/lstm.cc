// Runs long short-term memory layers (LSTM), and computes their gradients and weight updates.
#include <popnn/Lstm.hpp>
#include <popops/Zero.hpp>

#include "popnn/recurrent/creators.hpp"

namespace popnn::lstm {

using namespace popnn::recurrent;

namespace {

// The values that a step keeps for the gradients, each {batch, output}: the gates, act(c), the cell's state and the output.
enum Kept { FORGET, INPUT, CANDIDATE, OUTPUT, ACTIVATED, CELL, HIDDEN, KEPT };

Layer layerOf(const std::string &function, const LstmParams &params, const OptionFlags &options) {
  checkOptions(function.c_str(), options, lstm_options);
  const std::vector<unsigned> order(params.cellOrder.begin(), params.cellOrder.end());
  auto layer = describe(function, params.rnn, order, params.activation, params.recurrentActivation,
                        params.outputFullSequence);
  if (layer.units != BASIC_LSTM_CELL_NUM_UNITS)
    fail(function, "cellOrder has " + std::to_string(layer.units) + " gates; expected 4", "Pass each gate once");
  layer.preserve = params.preserveFinalState || !layer.batch_variable;
  return layer;
}

Shape biasesShape(const Layer &layer, const LstmParams &) { return {layer.units, layer.outputs}; }

NonLinearityType activationOf(const Layer &layer, std::size_t unit) {
  return unit == CANDIDATE ? layer.activation : layer.recurrent_activation;
}

void checkWeights(const std::string &function, const Layer &layer, const LstmWeights &weights, const LstmState &state) {
  checkShape(function, "inputWeights", weights.inputWeights, layer.weightsShape(layer.inputs), layer);
  checkShape(function, "outputWeights", weights.outputWeights, layer.weightsShape(layer.outputs), layer);
  checkShape(function, "the biases", weights.biases, {layer.units, layer.outputs}, layer);
  checkShape(function, "the initial output", state.output, layer.stateShape(), layer);
  checkShape(function, "the initial cell state", state.cellState, layer.stateShape(), layer);
}

// The forward pass of a layer; `input_used` is false if the input has no part in the gates.
class Forward {
 public:
  Forward(const Layer &layer, bool input_used, const KernelArguments &arguments)
      : layer_(layer), input_used_(input_used),
        lengths_(lengthsOf(layer, layer.variable ? arguments.inputs[6] : nullptr)),
        x_(read(layer, arguments.inputs[0], layer.steps * layer.step())),
        hidden_(read(layer, arguments.inputs[1], layer.state())),
        cell_(read(layer, arguments.inputs[2], layer.state())),
        input_weights_(read(layer, arguments.inputs[3], layer.units * layer.inputWeights())),
        output_weights_(read(layer, arguments.inputs[4], layer.units * layer.outputWeights())),
        biases_(read(layer, arguments.inputs[5], layer.units * layer.outputs)),
        outputs_(layer.steps * layer.state()), kept_(layer.steps * KEPT * layer.state()) {}

  void run(const KernelArguments &arguments, bool keeps) {
    for (std::size_t step = 0; step != layer_.steps; ++step) runStep(step);
    if (!layer_.preserve) {
      for (std::size_t i = 0; i != layer_.state(); ++i)
        if (lengths_[i / layer_.outputs] < layer_.steps) hidden_[i] = cell_[i] = 0;
    }
    write(layer_, layer_.full ? outputs_ : hidden_, arguments.outputs[0]);
    write(layer_, cell_, arguments.outputs[1]);
    if (keeps) write(layer_, kept_, arguments.outputs[2]);
  }

 private:
  void runStep(std::size_t step) {
    const auto size = layer_.state();
    float *kept = kept_.data() + step * KEPT * size;
    for (std::size_t unit = FORGET; unit <= OUTPUT; ++unit) {
      float *gate = kept + unit * size;
      const auto place = layer_.place[unit];
      fillWithBias(layer_, biases_.data() + place * layer_.outputs, gate);
      if (input_used_)
        addProduct(layer_, x_.data() + step * layer_.step(), layer_.inputs,
                   input_weights_.data() + place * layer_.inputWeights(), gate);
      addProduct(layer_, hidden_.data(), layer_.outputs, output_weights_.data() + place * layer_.outputWeights(), gate);
      activate(activationOf(layer_, unit), gate, layer_.batch, layer_.outputs);
    }
    for (std::size_t i = 0; i != size; ++i)
      kept[CELL * size + i] =
          kept[FORGET * size + i] * cell_[i] + kept[INPUT * size + i] * kept[CANDIDATE * size + i];
    std::copy_n(kept + CELL * size, size, kept + ACTIVATED * size);
    activate(layer_.activation, kept + ACTIVATED * size, layer_.batch, layer_.outputs);
    for (std::size_t i = 0; i != size; ++i) {
      if (step >= lengths_[i / layer_.outputs]) {
        for (std::size_t what = 0; what != KEPT; ++what) kept[what * size + i] = 0;
        continue;
      }
      cell_[i] = kept[CELL * size + i];
      hidden_[i] = kept[HIDDEN * size + i] = outputs_[step * size + i] =
          kept[OUTPUT * size + i] * kept[ACTIVATED * size + i];
    }
  }

  const Layer &layer_;
  const bool input_used_;
  const std::vector<std::size_t> lengths_;
  const Floats x_;
  Floats hidden_, cell_;
  const Floats input_weights_, output_weights_, biases_;
  Floats outputs_, kept_;
};

// The backward pass: the gradients of the gates' arguments, of the input and of the initial state.
class Backward {
 public:
  Backward(const Layer &layer, bool input_used, const KernelArguments &arguments)
      : layer_(layer), input_used_(input_used), lengths_(lengthsOf(layer, layer.variable ? arguments.inputs[7] : nullptr)),
        kept_(read(layer, arguments.inputs[0], layer.steps * KEPT * layer.state())),
        first_cell_(read(layer, arguments.inputs[1], layer.state())),
        input_weights_(read(layer, arguments.inputs[2], layer.units * layer.inputWeights())),
        output_weights_(read(layer, arguments.inputs[3], layer.units * layer.outputWeights())),
        given_(read(layer, arguments.inputs[4], (layer.full ? layer.steps : 1) * layer.state())),
        hidden_(read(layer, arguments.inputs[5], layer.state())), cell_(read(layer, arguments.inputs[6], layer.state())),
        gates_(layer.steps * layer.units * layer.state()), x_(layer.steps * layer.step()) {
    if (!layer.variable) return;
    std::fill(hidden_.begin(), hidden_.end(), 0.0f);
    std::fill(cell_.begin(), cell_.end(), 0.0f);
  }

  // The outputs: gradients of the initial output and cell state, of the input, and of the gates.
  void run(const KernelArguments &arguments) {
    for (std::size_t step = layer_.steps; step-- > 0;) runStep(step);
    write(layer_, hidden_, arguments.outputs[0]);
    write(layer_, cell_, arguments.outputs[1]);
    write(layer_, x_, arguments.outputs[2]);
    write(layer_, gates_, arguments.outputs[3]);
  }

 private:
  // The gradient that the output of a step is given.
  float given(std::size_t step, std::size_t i) const {
    if (layer_.full) return given_[step * layer_.state() + i];
    const auto length = lengths_[i / layer_.outputs];
    const bool counts = layer_.preserve || length == layer_.steps;
    return counts && step + 1 == length ? given_[i] : 0;
  }

  void runStep(std::size_t step) {
    const auto size = layer_.state();
    const float *kept = kept_.data() + step * KEPT * size;
    const float *before = step == 0 ? first_cell_.data() : kept + CELL * size - KEPT * size;
    float *gates = gates_.data() + step * layer_.units * size;
    Floats through(size);
    for (std::size_t i = 0; i != size; ++i) {
      if (step >= lengths_[i / layer_.outputs]) continue;
      hidden_[i] += given(step, i);
      gate(gates, OUTPUT)[i] = hidden_[i] * kept[ACTIVATED * size + i];
      through[i] = hidden_[i] * kept[OUTPUT * size + i];
    }
    multiplyByDerivative(layer_.activation, kept + ACTIVATED * size, through.data(), layer_.batch, layer_.outputs);
    for (std::size_t i = 0; i != size; ++i) {
      if (step >= lengths_[i / layer_.outputs]) continue;
      cell_[i] += through[i];
      gate(gates, FORGET)[i] = cell_[i] * before[i];
      gate(gates, INPUT)[i] = cell_[i] * kept[CANDIDATE * size + i];
      gate(gates, CANDIDATE)[i] = cell_[i] * kept[INPUT * size + i];
      cell_[i] *= kept[FORGET * size + i];
      hidden_[i] = 0;
    }
    for (std::size_t unit = FORGET; unit <= OUTPUT; ++unit) {
      float *gradients = gate(gates, unit);
      multiplyByDerivative(activationOf(layer_, unit), kept + unit * size, gradients, layer_.batch, layer_.outputs);
      const auto place = layer_.place[unit];
      addBackward(layer_, gradients, output_weights_.data() + place * layer_.outputWeights(), layer_.outputs,
                  hidden_.data());
      if (input_used_)
        addBackward(layer_, gradients, input_weights_.data() + place * layer_.inputWeights(), layer_.inputs,
                    x_.data() + step * layer_.step());
    }
  }

  float *gate(float *gates, std::size_t unit) const { return gates + layer_.place[unit] * layer_.state(); }

  const Layer &layer_;
  const bool input_used_;
  const std::vector<std::size_t> lengths_;
  const Floats kept_, first_cell_, input_weights_, output_weights_, given_;
  Floats hidden_, cell_, gates_, x_;
};

void runWeightUpdate(const Layer &layer, bool input_used, const KernelArguments &arguments) {
  const auto gates = read(layer, arguments.inputs[0], layer.steps * layer.units * layer.state());
  const auto kept = read(layer, arguments.inputs[1], layer.steps * KEPT * layer.state());
  const auto first = read(layer, arguments.inputs[2], layer.state());
  const auto x = read(layer, arguments.inputs[3], layer.steps * layer.step());
  Floats input_weights(layer.units * layer.inputWeights()), output_weights(layer.units * layer.outputWeights());
  Floats biases(layer.units * layer.outputs);
  for (std::size_t step = 0; step != layer.steps; ++step) {
    const float *before = step == 0 ? first.data() : kept.data() + ((step - 1) * KEPT + HIDDEN) * layer.state();
    for (std::size_t place = 0; place != layer.units; ++place) {
      const float *gradients = gates.data() + (step * layer.units + place) * layer.state();
      if (input_used)
        addWeightGradient(layer, x.data() + step * layer.step(), layer.inputs, gradients,
                          input_weights.data() + place * layer.inputWeights());
      addWeightGradient(layer, before, layer.outputs, gradients,
                        output_weights.data() + place * layer.outputWeights());
      addBiasGradient(layer, gradients, biases.data() + place * layer.outputs);
    }
  }
  write(layer, input_weights, arguments.outputs[0]);
  write(layer, output_weights, arguments.outputs[1]);
  write(layer, biases, arguments.outputs[2]);
}

Tensor zeros(poplar::Graph &graph, const Layer &layer, const poplar::DebugContext &debugContext) {
  const auto constant = graph.addConstant(layer.type, layer.stateShape(), 0.0f, debugContext);
  graph.setTileMapping(constant, 0);
  return constant;
}

// The backward pass with the gradients of the last state, or null for zeros.
LstmState addBackwardPass(const std::string &function, poplar::Graph &graph, const LstmParams &params, Sequence &prog,
                          const LstmState &first, const Tensor &kept, const LstmWeights &weights,
                          const Tensor &outputGrad, const Tensor *lastOutput, const Tensor *lastCell,
                          Tensor *inputGrad, Tensor *gates, const poplar::DebugContext &debugContext,
                          const OptionFlags &options) {
  const auto layer = layerOf(function, params, options);
  const poplar::DebugContext name{debugContext, "lstmBwd"};
  checkWeights(function, layer, weights, first);
  checkShape(function, "fwdIntermediates", kept, {layer.steps, KEPT, layer.batch, layer.outputs}, layer);
  checkShape(function, "the output's gradient", outputGrad, layer.outputShape(), layer);
  std::vector<Tensor> inputs{kept, first.cellState, weights.inputWeights, weights.outputWeights, outputGrad};
  for (const auto *last : {lastOutput, lastCell}) {
    if (last != nullptr) checkShape(function, "the gradient of the last state", *last, layer.stateShape(), layer);
    inputs.push_back(last == nullptr ? zeros(graph, layer, name) : *last);
  }
  for (const auto &lengths : lengthTensors(function, layer, params.rnn)) inputs.push_back(lengths);
  const LstmState result{create(graph, layer, layer.stateShape(), name), create(graph, layer, layer.stateShape(), name)};
  const auto x = create(graph, layer, layer.inputShape(), name);
  const auto gradients = create(graph, layer, {layer.steps, layer.units, layer.batch, layer.outputs}, name);
  poputil::detail::addKernelIfAny(
      graph, prog, name, inputs, {result.output, result.cellState, x, gradients},
      Kernel::of([](const KernelArguments &arguments, const auto &layer, const auto &used) {
        Backward(layer, used, arguments).run(arguments);
      }, layer, params.doInputWeightCalc),
      costOf(graph, layer, "LstmBackward"));
  if (inputGrad != nullptr) *inputGrad = x;
  if (gates != nullptr) *gates = gradients;
  return result;
}

}  // namespace

const std::vector<BasicLstmCellUnit> getDefaultBasicLstmCellOrder() {
  return {BASIC_LSTM_CELL_FORGET_GATE, BASIC_LSTM_CELL_INPUT_GATE, BASIC_LSTM_CELL_CANDIDATE,
          BASIC_LSTM_CELL_OUTPUT_GATE};
}

POPNN_RECURRENT_CREATORS(lstm, Lstm)

Tensor LstmState::getAsTensor() const { return poplar::concat({output.expand({0}), cellState.expand({0})}); }

Tensor createInitialOutput(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &debugContext,
                           const OptionFlags &options, poplin::PlanningCache *) {
  const auto layer = layerOf("popnn::lstm::createInitialState", params, options);
  return create(graph, layer, layer.stateShape(), debugContext);
}

Tensor createInitialCellState(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &debugContext,
                              const OptionFlags &options, poplin::PlanningCache *cache) {
  return createInitialOutput(graph, params, debugContext, options, cache);
}

LstmState createInitialState(poplar::Graph &graph, const LstmParams &params, const poplar::DebugContext &debugContext,
                             const OptionFlags &options, poplin::PlanningCache *cache) {
  return {createInitialOutput(graph, params, {debugContext, "output"}, options, cache),
          createInitialCellState(graph, params, {debugContext, "cellState"}, options, cache)};
}

void zeroInitialState(poplar::Graph &graph, const LstmState &initialState, Sequence &prog,
                      const poplar::DebugContext &debugContext) {
  popops::zero(graph, initialState.output, prog, debugContext);
  popops::zero(graph, initialState.cellState, prog, debugContext);
}

std::pair<Tensor, Tensor> lstmFwd(poplar::Graph &graph, const LstmParams &params, const LstmState &stateInit,
                                  const Tensor &in, const LstmWeights &weights, Tensor *intermediates,
                                  Sequence &fwdProg, const poplar::DebugContext &debugContext,
                                  const OptionFlags &options, poplin::PlanningCache *) {
  const auto layer = layerOf("popnn::lstm::lstmFwd", params, options);
  const poplar::DebugContext name{debugContext, "lstmFwd"};
  checkWeights("popnn::lstm::lstmFwd", layer, weights, stateInit);
  checkShape("popnn::lstm::lstmFwd", "the input", in, layer.inputShape(), layer);
  std::vector<Tensor> inputs{in, stateInit.output, stateInit.cellState, weights.inputWeights, weights.outputWeights,
                             weights.biases};
  for (const auto &lengths : lengthTensors("popnn::lstm::lstmFwd", layer, params.rnn)) inputs.push_back(lengths);
  const auto out = create(graph, layer, layer.outputShape(), name), cell = create(graph, layer, layer.stateShape(), name);
  std::vector<Tensor> outputs{out, cell};
  if (intermediates != nullptr) {
    *intermediates = create(graph, layer, {layer.steps, KEPT, layer.batch, layer.outputs}, name);
    outputs.push_back(*intermediates);
  }
  poputil::detail::addKernelIfAny(
      graph, fwdProg, name, inputs, outputs,
      Kernel::of([](const KernelArguments &arguments, const auto &layer, const auto &used, const auto &keeps) {
        Forward(layer, used, arguments).run(arguments, keeps);
      }, layer, params.doInputWeightCalc, intermediates != nullptr),
      costOf(graph, layer, "LstmForward"));
  return {out, cell};
}

LstmState lstmBwd(poplar::Graph &graph, const LstmParams &params, Sequence &prog, const LstmState &fwdStateInit,
                  const Tensor &fwdIntermediates, const LstmWeights &weights, const Tensor &, const Tensor &,
                  const Tensor &outputGrad, const LstmState *lastStepStateGrad, Tensor *inputGrad,
                  Tensor *bwdIntermediates, const poplar::DebugContext &debugContext, const OptionFlags &options,
                  poplin::PlanningCache *) {
  const auto *last = lastStepStateGrad;
  return addBackwardPass("popnn::lstm::lstmBwd", graph, params, prog, fwdStateInit, fwdIntermediates, weights,
                         outputGrad, last == nullptr ? nullptr : &last->output,
                         last == nullptr ? nullptr : &last->cellState, inputGrad, bwdIntermediates, debugContext,
                         options);
}

LstmState lstmBwd(poplar::Graph &graph, const LstmParams &params, Sequence &prog, const LstmState &fwdStateInit,
                  const Tensor &fwdIntermediates, const LstmWeights &weights, const Tensor &, const Tensor &,
                  const Tensor &outputGrad, const Tensor *lastCellStateGrad, Tensor *inputGrad,
                  Tensor *bwdIntermediates, const poplar::DebugContext &debugContext, const OptionFlags &options,
                  poplin::PlanningCache *) {
  return addBackwardPass("popnn::lstm::lstmBwd", graph, params, prog, fwdStateInit, fwdIntermediates, weights,
                         outputGrad, nullptr, lastCellStateGrad, inputGrad, bwdIntermediates, debugContext, options);
}

LstmWeights lstmWU(poplar::Graph &graph, const LstmParams &params, Sequence &prog, const LstmState &fwdStateInit,
                   const Tensor &fwdIntermediates, const Tensor &bwdIntermediates, const LstmWeights &weights,
                   const Tensor &input, const Tensor &, const poplar::DebugContext &debugContext,
                   const OptionFlags &options, poplin::PlanningCache *cache) {
  const auto layer = layerOf("popnn::lstm::lstmWU", params, options);
  const poplar::DebugContext name{debugContext, "lstmWU"};
  checkWeights("popnn::lstm::lstmWU", layer, weights, fwdStateInit);
  checkShape("popnn::lstm::lstmWU", "the input", input, layer.inputShape(), layer);
  const auto gradients = createWeights(graph, params, name, options, cache);
  poputil::detail::addKernelIfAny(
      graph, prog, name, {bwdIntermediates, fwdIntermediates, fwdStateInit.output, input},
      {gradients.inputWeights, gradients.outputWeights, gradients.biases},
      Kernel::of([](const KernelArguments &arguments, const auto &layer, const auto &used) {
        runWeightUpdate(layer, used, arguments);
      }, layer, params.doInputWeightCalc),
      costOf(graph, layer, "LstmWeightUpdate"));
  return gradients;
}

// Both forms of the last state's gradient.
#define BACKWARD_WITH_WEIGHTS(Last)                                                                                   \
  LstmState lstmBwdWithWU(poplar::Graph &graph, const LstmParams &params, Sequence &prog,                             \
                          const LstmState &fwdStateInit, const Tensor &fwdIntermediates, const LstmWeights &weights,  \
                          const Tensor &input, const Tensor &output, const Tensor &outputGrad, const Last *last,      \
                          Tensor *inputGrad, LstmWeights &weightsGrad, const poplar::DebugContext &debugContext,      \
                          const OptionFlags &options, poplin::PlanningCache *cache) {                                 \
    Tensor gates;                                                                                                     \
    const auto result = lstmBwd(graph, params, prog, fwdStateInit, fwdIntermediates, weights, input, output,          \
                                outputGrad, last, inputGrad, &gates, debugContext, options, cache);                   \
    weightsGrad = lstmWU(graph, params, prog, fwdStateInit, fwdIntermediates, gates, weights, input, output,          \
                         debugContext, options, cache);                                                               \
    return result;                                                                                                    \
  }

BACKWARD_WITH_WEIGHTS(LstmState)
BACKWARD_WITH_WEIGHTS(Tensor)
#undef BACKWARD_WITH_WEIGHTS

}  // namespace popnn::lstm
