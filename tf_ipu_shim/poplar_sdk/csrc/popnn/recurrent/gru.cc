// Runs gated recurrent layers (GRU), and computes their gradients and weight updates.
#include <popnn/Gru.hpp>

#include "popnn/recurrent/creators.hpp"

namespace popnn::gru {

using namespace popnn::recurrent;

namespace {

// The values that a step keeps for the gradients, each {batch, output}. They are the gates, the output, and the candidate's
// product with the state, which only `resetAfter` needs.
enum Kept { RESET, UPDATE, CANDIDATE, HIDDEN, PRODUCT, KEPT };

// A layer and where its reset gate is.
struct GruLayer : Layer {
  bool reset_after;

  // The biases of a unit: of the input, and of the state with `reset_after`.
  const float *bias(const Floats &biases, std::size_t unit, std::size_t which) const {
    return biases.data() + (place[unit] * (reset_after ? 2 : 1) + which) * outputs;
  }
  float *bias(Floats &biases, std::size_t at, std::size_t which) const {
    return biases.data() + (at * (reset_after ? 2 : 1) + which) * outputs;
  }
  std::size_t biases() const { return units * outputs * (reset_after ? 2 : 1); }
};
POPLAR_FIELDS(GruLayer, static_cast<Layer &>(part), part.reset_after)

GruLayer layerOf(const std::string &function, const GruParams &params, const OptionFlags &options) {
  checkOptions(function.c_str(), options, gru_options);
  const std::vector<unsigned> order(params.cellOrder.begin(), params.cellOrder.end());
  const auto layer = describe(function, params.rnn, order, params.activation, params.recurrentActivation,
                              params.outputFullSequence);
  if (layer.units != BASIC_GRU_CELL_NUM_UNITS)
    fail(function, "cellOrder has " + std::to_string(layer.units) + " gates; expected 3", "Pass each gate once");
  return {layer, params.resetAfter};
}

Shape biasesShape(const Layer &layer, const GruParams &params) {
  return params.resetAfter ? Shape{layer.units, 2, layer.outputs} : Shape{layer.units, layer.outputs};
}

void checkWeights(const std::string &function, const GruLayer &layer, const GruParams &params,
                  const GruWeights &weights, const Tensor &state) {
  checkShape(function, "inputWeights", weights.inputWeights, layer.weightsShape(layer.inputs), layer);
  checkShape(function, "outputWeights", weights.outputWeights, layer.weightsShape(layer.outputs), layer);
  checkShape(function, "the biases", weights.biases, biasesShape(layer, params), layer);
  checkShape(function, "the initial state", state, layer.stateShape(), layer);
}

// Weights of a layer, in float.
struct Weights {
  const GruLayer &layer;
  const Floats input, output;

  Weights(const GruLayer &layer, const void *input, const void *output)
      : layer(layer), input(read(layer, input, layer.units * layer.inputWeights())),
        output(read(layer, output, layer.units * layer.outputWeights())) {}

  const float *ofInput(std::size_t unit) const { return input.data() + layer.place[unit] * layer.inputWeights(); }
  const float *ofOutput(std::size_t unit) const { return output.data() + layer.place[unit] * layer.outputWeights(); }
};

class Forward {
 public:
  Forward(const GruLayer &layer, const KernelArguments &arguments)
      : layer_(layer), lengths_(lengthsOf(layer, layer.variable ? arguments.inputs[5] : nullptr)),
        x_(read(layer, arguments.inputs[0], layer.steps * layer.step())),
        hidden_(read(layer, arguments.inputs[1], layer.state())),
        weights_(layer, arguments.inputs[2], arguments.inputs[3]),
        biases_(read(layer, arguments.inputs[4], layer.biases())), outputs_(layer.steps * layer.state()),
        kept_(layer.steps * KEPT * layer.state()) {}

  void run(const KernelArguments &arguments, bool keeps) {
    for (std::size_t step = 0; step != layer_.steps; ++step) runStep(step);
    write(layer_, layer_.full ? outputs_ : hidden_, arguments.outputs[0]);
    if (keeps) write(layer_, kept_, arguments.outputs[1]);
  }

 private:
  // gate = x W + b, without the state's part.
  void startGate(std::size_t step, std::size_t unit, float *gate) const {
    fillWithBias(layer_, layer_.bias(biases_, unit, 0), gate);
    addProduct(layer_, x_.data() + step * layer_.step(), layer_.inputs, weights_.ofInput(unit), gate);
  }

  void runStep(std::size_t step) {
    const auto size = layer_.state();
    float *kept = kept_.data() + step * KEPT * size;
    for (std::size_t unit : {RESET, UPDATE}) {
      float *gate = kept + unit * size;
      startGate(step, unit, gate);
      if (layer_.reset_after)
        for (std::size_t i = 0; i != size; ++i) gate[i] += layer_.bias(biases_, unit, 1)[i % layer_.outputs];
      addProduct(layer_, hidden_.data(), layer_.outputs, weights_.ofOutput(unit), gate);
      activate(layer_.recurrent_activation, gate, layer_.batch, layer_.outputs);
    }
    float *candidate = kept + CANDIDATE * size, *product = kept + PRODUCT * size;
    const float *reset = kept + RESET * size, *update = kept + UPDATE * size;
    startGate(step, CANDIDATE, candidate);
    if (layer_.reset_after) {
      fillWithBias(layer_, layer_.bias(biases_, CANDIDATE, 1), product);
      addProduct(layer_, hidden_.data(), layer_.outputs, weights_.ofOutput(CANDIDATE), product);
      for (std::size_t i = 0; i != size; ++i) candidate[i] += reset[i] * product[i];
    } else {
      Floats gated(size);
      for (std::size_t i = 0; i != size; ++i) gated[i] = reset[i] * hidden_[i];
      addProduct(layer_, gated.data(), layer_.outputs, weights_.ofOutput(CANDIDATE), candidate);
    }
    activate(layer_.activation, candidate, layer_.batch, layer_.outputs);
    for (std::size_t i = 0; i != size; ++i) {
      if (step >= lengths_[i / layer_.outputs]) {
        for (std::size_t what = 0; what != KEPT; ++what) kept[what * size + i] = 0;
        continue;
      }
      hidden_[i] = update[i] * hidden_[i] + (1 - update[i]) * candidate[i];
      kept[HIDDEN * size + i] = outputs_[step * size + i] = hidden_[i];
    }
  }

  const GruLayer &layer_;
  const std::vector<std::size_t> lengths_;
  const Floats x_;
  Floats hidden_;
  const Weights weights_;
  const Floats biases_;
  Floats outputs_, kept_;
};

// The gradients of the gates' arguments, of the input and of the initial state.
class Backward {
 public:
  Backward(const GruLayer &layer, const KernelArguments &arguments)
      : layer_(layer), lengths_(lengthsOf(layer, layer.variable ? arguments.inputs[5] : nullptr)),
        kept_(read(layer, arguments.inputs[0], layer.steps * KEPT * layer.state())),
        first_(read(layer, arguments.inputs[1], layer.state())),
        weights_(layer, arguments.inputs[2], arguments.inputs[3]),
        given_(read(layer, arguments.inputs[4], (layer.full ? layer.steps : 1) * layer.state())),
        hidden_(layer.state()), gates_(layer.steps * layer.units * layer.state()), x_(layer.steps * layer.step()) {}

  void run(const KernelArguments &arguments) {
    for (std::size_t step = layer_.steps; step-- > 0;) runStep(step);
    write(layer_, hidden_, arguments.outputs[0]);
    write(layer_, x_, arguments.outputs[1]);
    write(layer_, gates_, arguments.outputs[2]);
  }

 private:
  float given(std::size_t step, std::size_t i) const {
    if (layer_.full) return given_[step * layer_.state() + i];
    return step + 1 == lengths_[i / layer_.outputs] ? given_[i] : 0;
  }

  float *gate(std::size_t step, std::size_t unit) {
    return gates_.data() + (step * layer_.units + layer_.place[unit]) * layer_.state();
  }

  void runStep(std::size_t step) {
    const auto size = layer_.state();
    const float *kept = kept_.data() + step * KEPT * size;
    const float *before = step == 0 ? first_.data() : kept + HIDDEN * size - KEPT * size;
    const float *reset = kept + RESET * size;
    float *to_reset = gate(step, RESET), *to_update = gate(step, UPDATE), *to_candidate = gate(step, CANDIDATE);
    const auto alive = [&](std::size_t i) { return step < lengths_[i / layer_.outputs]; };
    for (std::size_t i = 0; i != size; ++i) {
      if (!alive(i)) continue;
      const float gradient = hidden_[i] + given(step, i);
      to_update[i] = gradient * (before[i] - kept[CANDIDATE * size + i]);
      to_candidate[i] = gradient * (1 - kept[UPDATE * size + i]);
      hidden_[i] = gradient * kept[UPDATE * size + i];
    }
    multiplyByDerivative(layer_.activation, kept + CANDIDATE * size, to_candidate, layer_.batch, layer_.outputs);
    // The gradient of the product of the state, or of the gated state, with the candidate's weights.
    Floats through(size);
    if (layer_.reset_after) {
      for (std::size_t i = 0; i != size; ++i) {
        to_reset[i] = to_candidate[i] * kept[PRODUCT * size + i];
        through[i] = to_candidate[i] * reset[i];
      }
      addBackward(layer_, through.data(), weights_.ofOutput(CANDIDATE), layer_.outputs, hidden_.data());
    } else {
      addBackward(layer_, to_candidate, weights_.ofOutput(CANDIDATE), layer_.outputs, through.data());
      for (std::size_t i = 0; i != size; ++i) {
        if (!alive(i)) continue;
        to_reset[i] = through[i] * before[i];
        hidden_[i] += through[i] * reset[i];
      }
    }
    for (std::size_t unit : {RESET, UPDATE}) {
      multiplyByDerivative(layer_.recurrent_activation, kept + unit * size, gate(step, unit), layer_.batch,
                           layer_.outputs);
      addBackward(layer_, gate(step, unit), weights_.ofOutput(unit), layer_.outputs, hidden_.data());
    }
    for (std::size_t unit : {RESET, UPDATE, CANDIDATE})
      addBackward(layer_, gate(step, unit), weights_.ofInput(unit), layer_.inputs, x_.data() + step * layer_.step());
  }

  const GruLayer &layer_;
  const std::vector<std::size_t> lengths_;
  const Floats kept_, first_;
  const Weights weights_;
  const Floats given_;
  Floats hidden_, gates_, x_;
};

void runWeightUpdate(const GruLayer &layer, const KernelArguments &arguments) {
  const auto size = layer.state();
  const auto gates = read(layer, arguments.inputs[0], layer.steps * layer.units * size);
  const auto kept = read(layer, arguments.inputs[1], layer.steps * KEPT * size);
  const auto first = read(layer, arguments.inputs[2], size);
  const auto x = read(layer, arguments.inputs[3], layer.steps * layer.step());
  Floats input(layer.units * layer.inputWeights()), output(layer.units * layer.outputWeights()), biases(layer.biases());
  Floats state(size), through(size);
  for (std::size_t step = 0; step != layer.steps; ++step) {
    const float *before = step == 0 ? first.data() : kept.data() + ((step - 1) * KEPT + HIDDEN) * size;
    const float *reset = kept.data() + (step * KEPT + RESET) * size;
    for (std::size_t place = 0; place != layer.units; ++place) {
      const float *gradients = gates.data() + (step * layer.units + place) * size;
      // The candidate's weights multiply the gated state, or their gradient is gated.
      const bool candidate = place == layer.place[CANDIDATE];
      for (std::size_t i = 0; i != size; ++i) {
        state[i] = candidate && !layer.reset_after ? reset[i] * before[i] : before[i];
        through[i] = candidate && layer.reset_after ? reset[i] * gradients[i] : gradients[i];
      }
      addWeightGradient(layer, x.data() + step * layer.step(), layer.inputs, gradients,
                        input.data() + place * layer.inputWeights());
      addWeightGradient(layer, state.data(), layer.outputs, through.data(),
                        output.data() + place * layer.outputWeights());
      addBiasGradient(layer, gradients, layer.bias(biases, place, 0));
      if (layer.reset_after) addBiasGradient(layer, through.data(), layer.bias(biases, place, 1));
    }
  }
  write(layer, input, arguments.outputs[0]);
  write(layer, output, arguments.outputs[1]);
  write(layer, biases, arguments.outputs[2]);
}

// The parameters with the number of steps of each sequence.
GruParams withSteps(GruParams params, const Tensor &steps) {
  params.rnn.varTimeSteps = steps;
  return params;
}

}  // namespace

const std::vector<BasicGruCellUnit> getDefaultBasicGruCellOrder() {
  return {BASIC_GRU_CELL_RESET_GATE, BASIC_GRU_CELL_UPDATE_GATE, BASIC_GRU_CELL_CANDIDATE};
}

POPNN_RECURRENT_CREATORS(gru, Gru)

Tensor createInitialState(poplar::Graph &graph, const GruParams &params, const poplar::DebugContext &debugContext,
                          const OptionFlags &options, poplin::PlanningCache *) {
  const auto layer = layerOf("popnn::gru::createInitialState", params, options);
  return create(graph, layer, layer.stateShape(), debugContext);
}

Tensor gruFwd(poplar::Graph &graph, const GruParams &params, const Tensor &stateInit, const Tensor &in,
              const GruWeights &weights, Tensor *intermediates, Sequence &fwdProg,
              const poplar::DebugContext &debugContext, const OptionFlags &options, poplin::PlanningCache *) {
  const auto layer = layerOf("popnn::gru::gruFwd", params, options);
  const poplar::DebugContext name{debugContext, "gruFwd"};
  checkWeights("popnn::gru::gruFwd", layer, params, weights, stateInit);
  checkShape("popnn::gru::gruFwd", "the input", in, layer.inputShape(), layer);
  std::vector<Tensor> inputs{in, stateInit, weights.inputWeights, weights.outputWeights, weights.biases};
  for (const auto &lengths : lengthTensors("popnn::gru::gruFwd", layer, params.rnn)) inputs.push_back(lengths);
  const auto out = create(graph, layer, layer.outputShape(), name);
  std::vector<Tensor> outputs{out};
  if (intermediates != nullptr) {
    *intermediates = create(graph, layer, {layer.steps, KEPT, layer.batch, layer.outputs}, name);
    outputs.push_back(*intermediates);
  }
  poputil::detail::addKernelIfAny(
      graph, fwdProg, name, inputs, outputs,
      Kernel::of([](const KernelArguments &arguments, const auto &layer, const auto &keeps) {
        Forward(layer, arguments).run(arguments, keeps);
      }, layer, intermediates != nullptr),
      costOf(graph, layer, "GruForward"));
  return out;
}

Tensor gruFwd(poplar::Graph &graph, const GruParams &params, const Tensor &stateInit, const Tensor &in,
              const Tensor &realTimeSteps, const GruWeights &weights, Tensor *intermediates, Sequence &fwdProg,
              const poplar::DebugContext &debugContext, const OptionFlags &options, poplin::PlanningCache *cache) {
  return gruFwd(graph, withSteps(params, realTimeSteps), stateInit, in, weights, intermediates, fwdProg, debugContext,
                options, cache);
}

Tensor gruBwd(poplar::Graph &graph, const GruParams &params, Sequence &prog, const Tensor &fwdOutputInit,
              const Tensor &fwdIntermediatesSeq, const GruWeights &weights, const Tensor &, const Tensor &,
              const Tensor &gradLayerNext, Tensor *inputGrad, Tensor *bwdIntermediates,
              const poplar::DebugContext &debugContext, const OptionFlags &options_, poplin::PlanningCache *) {
  const std::string function = "popnn::gru::gruBwd";
  const auto layer = layerOf(function, params, options_);
  const poplar::DebugContext name{debugContext, "gruBwd"};
  checkWeights(function, layer, params, weights, fwdOutputInit);
  checkShape(function, "fwdIntermediates", fwdIntermediatesSeq, {layer.steps, KEPT, layer.batch, layer.outputs}, layer);
  checkShape(function, "the output's gradient", gradLayerNext, layer.outputShape(), layer);
  std::vector<Tensor> inputs{fwdIntermediatesSeq, fwdOutputInit, weights.inputWeights, weights.outputWeights,
                             gradLayerNext};
  for (const auto &lengths : lengthTensors(function, layer, params.rnn)) inputs.push_back(lengths);
  const auto state = create(graph, layer, layer.stateShape(), name), x = create(graph, layer, layer.inputShape(), name);
  const auto gates = create(graph, layer, {layer.steps, layer.units, layer.batch, layer.outputs}, name);
  poputil::detail::addKernelIfAny(
      graph, prog, name, inputs, {state, x, gates},
      Kernel::of([](const KernelArguments &arguments, const auto &layer) {
        Backward(layer, arguments).run(arguments);
      }, layer),
      costOf(graph, layer, "GruBackward"));
  if (inputGrad != nullptr) *inputGrad = x;
  if (bwdIntermediates != nullptr) *bwdIntermediates = gates;
  return state;
}

Tensor gruBwd(poplar::Graph &graph, const GruParams &params, Sequence &prog, const Tensor &fwdOutputInit,
              const Tensor &fwdIntermediatesSeq, const GruWeights &weights, const Tensor &fwdInputSeq,
              const Tensor &realTimeSteps, const Tensor &fwdOutput, const Tensor &gradLayerNext, Tensor *inputGrad,
              Tensor *bwdIntermediates, const poplar::DebugContext &debugContext, const OptionFlags &options_,
              poplin::PlanningCache *planningCache) {
  return gruBwd(graph, withSteps(params, realTimeSteps), prog, fwdOutputInit, fwdIntermediatesSeq, weights,
                fwdInputSeq, fwdOutput, gradLayerNext, inputGrad, bwdIntermediates, debugContext, options_,
                planningCache);
}

GruWeights gruWU(poplar::Graph &graph, const GruParams &params, Sequence &prog, const Tensor &fwdOutputInit,
                 const Tensor &fwdIntermediates, const Tensor &bwdIntermediates, const GruWeights &weights,
                 const Tensor &input, const Tensor &, const poplar::DebugContext &debugContext,
                 const OptionFlags &options_, poplin::PlanningCache *planningCache) {
  const auto layer = layerOf("popnn::gru::gruWU", params, options_);
  const poplar::DebugContext name{debugContext, "gruWU"};
  checkWeights("popnn::gru::gruWU", layer, params, weights, fwdOutputInit);
  checkShape("popnn::gru::gruWU", "the input", input, layer.inputShape(), layer);
  const auto gradients = createWeights(graph, params, name, options_, planningCache);
  poputil::detail::addKernelIfAny(
      graph, prog, name, {bwdIntermediates, fwdIntermediates, fwdOutputInit, input},
      {gradients.inputWeights, gradients.outputWeights, gradients.biases},
      Kernel::of([](const KernelArguments &arguments, const auto &layer) { runWeightUpdate(layer, arguments); }, layer),
      costOf(graph, layer, "GruWeightUpdate"));
  return gradients;
}

Tensor gruBwdWithWU(poplar::Graph &graph, const GruParams &params, Sequence &prog, const Tensor &fwdOutputInit,
                    const Tensor &fwdIntermediates, const GruWeights &weights, const Tensor &input,
                    const Tensor &output, const Tensor &outputGrad, Tensor *inputGrad, GruWeights &weightsGrad,
                    const poplar::DebugContext &debugContext, const OptionFlags &options_,
                    poplin::PlanningCache *planningCache) {
  Tensor gates;
  const auto state = gruBwd(graph, params, prog, fwdOutputInit, fwdIntermediates, weights, input, output, outputGrad,
                            inputGrad, &gates, debugContext, options_, planningCache);
  weightsGrad = gruWU(graph, params, prog, fwdOutputInit, fwdIntermediates, gates, weights, input, output,
                      debugContext, options_, planningCache);
  return state;
}

Tensor gruBwdWithWU(poplar::Graph &graph, const GruParams &params, Sequence &prog, const Tensor &fwdOutputInit,
                    const Tensor &fwdIntermediates, const GruWeights &weights, const Tensor &input,
                    const Tensor &realTimeSteps, const Tensor &output, const Tensor &outputGrad, Tensor *inputGrad,
                    GruWeights &weightsGrad, const poplar::DebugContext &debugContext, const OptionFlags &options_,
                    poplin::PlanningCache *planningCache) {
  return gruBwdWithWU(graph, withSteps(params, realTimeSteps), prog, fwdOutputInit, fwdIntermediates, weights, input,
                      output, outputGrad, inputGrad, weightsGrad, debugContext, options_, planningCache);
}

}  // namespace popnn::gru
