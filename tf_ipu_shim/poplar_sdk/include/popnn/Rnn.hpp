// The sizes and parameters of a recurrent layer, and layers of the caller's own cells.
#ifndef popnn_Rnn_hpp
#define popnn_Rnn_hpp

#include <functional>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>
#include <popnn/NonLinearityDef.hpp>
#include <utility>
#include <vector>

namespace popnn {
namespace rnn {

struct RnnParams {
  poplar::Type dataType;
  std::size_t batchSize;
  std::size_t maxTimeSteps;
  std::size_t timeSteps;  // the same
  // How many steps each sequence of the batch has, or one number for all; without it every sequence has all steps.
  poplar::Tensor varTimeSteps;
  std::vector<std::size_t> layerSizes;  // of the input, and of the output

  RnnParams(poplar::Type dataType, std::size_t batchSize, std::size_t timeSteps, std::vector<std::size_t> layerSizes)
      : RnnParams(dataType, batchSize, timeSteps, {}, std::move(layerSizes)) {}
  RnnParams(poplar::Type dataType, std::size_t batchSize, std::size_t maxTimeSteps,
            const poplar::Tensor &varTimeSteps, std::vector<std::size_t> layerSizes)
      : dataType(dataType), batchSize(batchSize), maxTimeSteps(maxTimeSteps), timeSteps(maxTimeSteps),
        varTimeSteps(varTimeSteps), layerSizes(std::move(layerSizes)) {}

  // In how many parts of disjoint tiles the steps of a sequence fit.
  std::size_t getMaxShards(const poplar::Graph &graph) const;
  // Of one step, spread over the tiles of a part.
  std::size_t getInputBytesPerTile(const poplar::Graph &graph) const;
  std::size_t getOutputBytesPerTile(const poplar::Graph &graph) const;

  bool variableTimeSteps() const { return varTimeSteps.valid(); }
  bool batchVariableTimeSteps() const { return variableTimeSteps() && varTimeSteps.numElements() > 1; }
};

// Tensors for the functions below, of the steps, the batch and a size; the state has `multiple` in place of the steps.
poplar::Tensor createInitialState(poplar::Graph &graph, const RnnParams &params, bool isOutput, unsigned multiple,
                                  unsigned numShards, const poplar::DebugContext &debugContext = {});
poplar::Tensor createRecurrentTensor(poplar::Graph &graph, const RnnParams &params, unsigned size, unsigned numShards,
                                     const poplar::DebugContext &debugContext = {});
poplar::Tensor createInputTensor(poplar::Graph &graph, const RnnParams &params, unsigned numShards,
                                 const poplar::DebugContext &debugContext = {});
poplar::Tensor createOutputTensor(poplar::Graph &graph, const RnnParams &params, unsigned numShards,
                                  const poplar::DebugContext &debugContext = {});
// `multiple` of them behind each other.
poplar::Tensor createOutputTensor(poplar::Graph &graph, const RnnParams &params, unsigned multiple, unsigned numShards,
                                  const poplar::DebugContext &debugContext = {});

// `tSingle`, then all steps of `tBase` but its last.
poplar::Tensor shiftRnnTensor(poplar::Graph &graph, const RnnParams &params, const poplar::Tensor &tBase,
                              const poplar::Tensor &tSingle, poplar::program::Sequence &prog, unsigned numShards,
                              const poplar::DebugContext &debugContext = {});

// The tensors of one step. An input has the shape {batch, size}. The others keep a first dimension, which has an element
// for each of the tensors that are behind each other.
struct RnnSlice {
  std::vector<poplar::Tensor> inputs;
  poplar::Tensor interimIn;
  poplar::Tensor interimOut;
  std::vector<poplar::Tensor> outputs;
};

// Which sequences of the batch have the step; not valid, as all have.
struct RnnBatchwiseFlags {
  poplar::Tensor mask;
  poplar::Tensor inverse;
  bool valid() const { return mask.valid(); }
};

// The first step of the layer's part, and the present one.
struct TimeStepState {
  poplar::Tensor begin;
  poplar::Tensor counter;
  poplar::Tensor variableSeqFlag;
};

// Builds the program of one step: it reads and writes the state, and writes the slices of the outputs.
using LoopBodyType = std::function<poplar::program::Sequence(
    poplar::Graph &graph, const TimeStepState &time, const RnnBatchwiseFlags &, std::vector<poplar::Tensor> &state,
    const RnnSlice &slice, std::vector<poplar::Tensor> &created, poplar::program::Sequence *initProg,
    const poplar::DebugNameAndId &)>;

// Where a state is stored after each step.
struct StateSequence {
  poplar::Tensor output;
  std::size_t stateIndex;
};

// Runs a cell for every step, from the last one if `reverse`. Returns the state after it. The form that gathers every
// few steps, and sequences of different lengths, are missing.
std::vector<poplar::Tensor> Rnn(poplar::Graph &graph, const RnnParams &params, bool reverse,
                                const std::vector<poplar::Tensor> &initState, const StateSequence &stateSequence,
                                const std::vector<poplar::Tensor> &inputs, const poplar::Tensor *interimIn,
                                poplar::Tensor *interimOut, const std::vector<poplar::Tensor> &outputs,
                                const std::vector<poplar::Tensor> &created, poplar::program::Sequence &prog,
                                const LoopBodyType &loopFn, unsigned numShards, poplar::OptionFlags &options,
                                const poplar::DebugContext &debugContext = {});

namespace detail {

// The parameters that LSTM and GRU layers share.
struct LayerParams {
  RnnParams rnn;
  // The same as in `rnn`.
  poplar::Type dataType;
  std::size_t batchSize;
  std::size_t timeSteps;
  std::vector<std::size_t> layerSizes;
  bool outputFullSequence = true;  // else the layer returns the last output
  bool calcInputGradients = true;
  NonLinearityType activation;
  NonLinearityType recurrentActivation;

  LayerParams(poplar::Type dataType, std::size_t batchSize, std::size_t timeSteps, std::vector<std::size_t> layerSizes,
              NonLinearityType activation = NonLinearityType::TANH,
              NonLinearityType recurrentActivation = NonLinearityType::SIGMOID)
      : LayerParams(dataType, batchSize, timeSteps, {}, std::move(layerSizes), activation, recurrentActivation) {}
  LayerParams(poplar::Type dataType, std::size_t batchSize, std::size_t maxTimeSteps, const poplar::Tensor &timeSteps,
              std::vector<std::size_t> layerSizes, NonLinearityType activation = NonLinearityType::TANH,
              NonLinearityType recurrentActivation = NonLinearityType::SIGMOID)
      : rnn(dataType, batchSize, maxTimeSteps, timeSteps, layerSizes), dataType(dataType), batchSize(batchSize),
        timeSteps(maxTimeSteps), layerSizes(std::move(layerSizes)), activation(activation),
        recurrentActivation(recurrentActivation) {}
};

// The weights of such a layer, and their gradients.
struct LayerWeights {
  poplar::Tensor inputWeights;
  poplar::Tensor outputWeights;
  poplar::Tensor biases;
};

}  // namespace detail
}  // namespace rnn
}  // namespace popnn

#endif
