// The sizes and parameters of a recurrent layer.
#ifndef popnn_Rnn_hpp
#define popnn_Rnn_hpp

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

  bool variableTimeSteps() const { return varTimeSteps.valid(); }
  bool batchVariableTimeSteps() const { return variableTimeSteps() && varTimeSteps.numElements() > 1; }
};

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
