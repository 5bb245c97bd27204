// Code that recurrent layers share: sizes, gates, the steps of each sequence, and their cost.
#ifndef tf_ipu_shim_popnn_recurrent_steps_hpp
#define tf_ipu_shim_popnn_recurrent_steps_hpp

#include <popnn/NonLinearityDef.hpp>
#include <popnn/Rnn.hpp>

#include "poputil/library.hpp"

namespace popnn::recurrent {

using namespace poputil::library;
using Floats = std::vector<float>;

// One layer, as its kernels see it.
struct Layer {
  std::size_t steps, batch, inputs, outputs, units;
  std::vector<std::size_t> place;  // of each unit's weights
  poplar::Type type;
  NonLinearityType activation, recurrent_activation;
  bool full, variable, batch_variable, preserve = false;

  std::size_t state() const { return batch * outputs; }
  std::size_t step() const { return batch * inputs; }
  std::size_t inputWeights() const { return inputs * outputs; }
  std::size_t outputWeights() const { return outputs * outputs; }

  // The layer's tensors.
  Shape inputShape() const { return {steps, batch, inputs}; }
  Shape stateShape() const { return {batch, outputs}; }
  Shape outputShape() const { return full ? Shape{steps, batch, outputs} : stateShape(); }
  Shape weightsShape(std::size_t rows) const { return {units, rows, outputs}; }
};

POPLAR_FIELDS(Layer, part.steps, part.batch, part.inputs, part.outputs, part.units, part.place, part.type,
              part.activation, part.recurrent_activation, part.full, part.variable, part.batch_variable, part.preserve)

// Throws poplibs_error for sizes or activations that no layer has. `order` has the number of each unit by its place.
Layer describe(const std::string &function, const rnn::RnnParams &params, const std::vector<unsigned> &order,
               NonLinearityType activation, NonLinearityType recurrentActivation, bool full);

void checkShape(const std::string &function, const char *what, const Tensor &tensor, const Shape &shape,
                const Layer &layer);

// The number of steps of each sequence: those of the layer, or of a tensor of integers.
std::vector<std::size_t> lengthsOf(const Layer &layer, const void *lengths);
// The tensor of lengths, flat and checked; none without variable steps.
std::vector<Tensor> lengthTensors(const std::string &function, const Layer &layer, const rnn::RnnParams &params);

// A function of each row of `columns` values, and the product of gradients with its derivative, from its results.
void activate(NonLinearityType type, float *values, std::size_t rows, std::size_t columns);
void multiplyByDerivative(NonLinearityType type, const float *results, float *gradients, std::size_t rows,
                          std::size_t columns);

// gate = bias, for each sequence of the batch; then gate += x W, d x W^T, W += x^T d.
void fillWithBias(const Layer &layer, const float *bias, float *gate);
void addProduct(const Layer &layer, const float *x, std::size_t size, const float *weights, float *gate);
void addBackward(const Layer &layer, const float *gradients, const float *weights, std::size_t size, float *x);
void addWeightGradient(const Layer &layer, const float *x, std::size_t size, const float *gradients, float *weights);
void addBiasGradient(const Layer &layer, const float *gradients, float *bias);

inline Floats read(const Layer &layer, const void *data, std::size_t count) {
  return poputil::detail::readFloats(layer.type, data, count);
}
inline void write(const Layer &layer, const Floats &values, void *data) {
  poputil::detail::writeFloats(layer.type, values.data(), data, values.size());
}

// The cost of products of all steps with the weights, spread over the tiles of the target.
poplar::detail::KernelCost costOf(const poplar::Graph &graph, const Layer &layer, const char *vertex);
std::uint64_t flopsOf(const Layer &layer);

}  // namespace popnn::recurrent

#endif
