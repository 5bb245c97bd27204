// Computes the steps of recurrent layers in float: matmuls, activations and their gradients.
#include "popnn/recurrent/steps.hpp"

#include <poputil/detail/matrices.hpp>

namespace popnn::recurrent {

namespace {

// Products of two values that one tile adds in a cycle: its matrix unit has 16 for float and 64 for half.
constexpr std::uint64_t FLOAT_PRODUCTS = 16, HALF_PRODUCTS = 64;

bool isSoftmax(NonLinearityType type) {
  return type == NonLinearityType::SOFTMAX || type == NonLinearityType::SOFTMAX_STABLE;
}

void checkActivation(const std::string &function, NonLinearityType type) {
  using Type = NonLinearityType;
  if (type != Type::SIGMOID && type != Type::HARD_SIGMOID && type != Type::RELU && type != Type::TANH &&
      !isSoftmax(type))
    fail(function, "the activation is no function whose derivative follows from its result",
         "Use SIGMOID, HARD_SIGMOID, RELU, TANH or SOFTMAX");
}

void softmaxRow(float *values, std::size_t size) {
  const float largest = *std::max_element(values, values + size);
  double sum = 0;
  for (std::size_t i = 0; i != size; ++i) sum += values[i] = std::exp(values[i] - largest);
  for (std::size_t i = 0; i != size; ++i) values[i] = static_cast<float>(values[i] / sum);
}

float activated(NonLinearityType type, float x) {
  switch (type) {
    case NonLinearityType::SIGMOID: return 1 / (1 + std::exp(-x));
    case NonLinearityType::HARD_SIGMOID: return std::clamp(0.2f * x + 0.5f, 0.0f, 1.0f);
    case NonLinearityType::RELU: return std::max(x, 0.0f);
    default: return std::tanh(x);
  }
}

float derivative(NonLinearityType type, float y) {
  switch (type) {
    case NonLinearityType::SIGMOID: return y * (1 - y);
    case NonLinearityType::HARD_SIGMOID: return y > 0 && y < 1 ? 0.2f : 0.0f;
    case NonLinearityType::RELU: return y > 0 ? 1.0f : 0.0f;
    default: return 1 - y * y;
  }
}

}  // namespace

Layer describe(const std::string &function, const rnn::RnnParams &params, const std::vector<unsigned> &order,
               NonLinearityType activation, NonLinearityType recurrentActivation, bool full) {
  if (params.layerSizes.size() != 2)
    fail(function, "layerSizes has " + std::to_string(params.layerSizes.size()) + " elements",
         "Pass the size of the input and that of the output");
  if (!poputil::detail::isFloating(params.dataType))
    fail(function, "the type is " + poputil::detail::typeName(params.dataType) + "; expected float or half",
         "Pass FLOAT or HALF");
  checkActivation(function, activation);
  checkActivation(function, recurrentActivation);
  std::vector<std::size_t> place(order.size(), order.size());
  for (std::size_t i = 0; i != order.size(); ++i)
    if (order[i] < place.size()) place[order[i]] = i;
  if (std::find(place.begin(), place.end(), order.size()) != place.end())
    fail(function, "cellOrder does not name each gate once", "Pass the default order, or a permutation of it");
  return {params.maxTimeSteps,
          params.batchSize,
          params.layerSizes[0],
          params.layerSizes[1],
          order.size(),
          std::move(place),
          params.dataType,
          activation,
          recurrentActivation,
          full,
          params.variableTimeSteps(),
          params.batchVariableTimeSteps()};
}

void checkShape(const std::string &function, const char *what, const Tensor &tensor, const Shape &shape,
                const Layer &layer) {
  if (tensor.shape() != shape || tensor.elementType() != layer.type)
    fail(function, std::string(what) + " has the shape " + poputil::detail::describeShape(tensor.shape()) +
         " and the type " + poputil::detail::typeName(tensor.elementType()) + "; expected " +
         poputil::detail::describeShape(shape) + " and " + poputil::detail::typeName(layer.type),
         "Pass tensors that fit the parameters");
}

std::vector<Tensor> lengthTensors(const std::string &function, const Layer &layer, const rnn::RnnParams &params) {
  if (!layer.variable) return {};
  const auto &lengths = params.varTimeSteps;
  if ((lengths.numElements() != 1 && lengths.numElements() != layer.batch) ||
      (lengths.elementType() != poplar::UNSIGNED_INT && lengths.elementType() != poplar::INT))
    fail(function, "the steps have the shape " + poputil::detail::describeShape(lengths.shape()) + " and the type " +
         poputil::detail::typeName(lengths.elementType()),
         "Pass one integer, or one for each of the " + std::to_string(layer.batch) + " sequences");
  return {lengths.flatten()};
}

std::vector<std::size_t> lengthsOf(const Layer &layer, const void *lengths) {
  std::vector<std::size_t> found(layer.batch, layer.steps);
  if (!layer.variable) return found;
  const auto *given = static_cast<const std::uint32_t *>(lengths);
  for (std::size_t i = 0; i != layer.batch; ++i)
    found[i] = std::min<std::size_t>(given[layer.batch_variable ? i : 0], layer.steps);
  return found;
}

void activate(NonLinearityType type, float *values, std::size_t rows, std::size_t columns) {
  if (isSoftmax(type)) {
    for (std::size_t row = 0; row != rows; ++row) softmaxRow(values + row * columns, columns);
    return;
  }
  for (std::size_t i = 0; i != rows * columns; ++i) values[i] = activated(type, values[i]);
}

void multiplyByDerivative(NonLinearityType type, const float *results, float *gradients, std::size_t rows,
                          std::size_t columns) {
  if (!isSoftmax(type)) {
    for (std::size_t i = 0; i != rows * columns; ++i) gradients[i] *= derivative(type, results[i]);
    return;
  }
  for (std::size_t row = 0; row != rows; ++row, results += columns, gradients += columns) {
    double along = 0;
    for (std::size_t i = 0; i != columns; ++i) along += double(results[i]) * gradients[i];
    for (std::size_t i = 0; i != columns; ++i) gradients[i] = static_cast<float>(results[i] * (gradients[i] - along));
  }
}

void fillWithBias(const Layer &layer, const float *bias, float *gate) {
  for (std::size_t row = 0; row != layer.batch; ++row) std::copy_n(bias, layer.outputs, gate + row * layer.outputs);
}

void addProduct(const Layer &layer, const float *x, std::size_t size, const float *weights, float *gate) {
  poputil::detail::multiply(x, weights, gate, layer.batch, size, layer.outputs, true);
}

void addBackward(const Layer &layer, const float *gradients, const float *weights, std::size_t size, float *x) {
  poputil::detail::addProductWithTransposed(gradients, weights, x, layer.batch, layer.outputs, size);
}

void addWeightGradient(const Layer &layer, const float *x, std::size_t size, const float *gradients, float *weights) {
  poputil::detail::addProductOfTransposed(x, gradients, weights, size, layer.batch, layer.outputs);
}

void addBiasGradient(const Layer &layer, const float *gradients, float *bias) {
  for (std::size_t i = 0; i != layer.state(); ++i) bias[i % layer.outputs] += gradients[i];
}

std::uint64_t flopsOf(const Layer &layer) {
  return 2 * layer.steps * layer.batch * layer.units * layer.outputs * (layer.inputs + layer.outputs);
}

poplar::detail::KernelCost costOf(const poplar::Graph &graph, const Layer &layer, const char *vertex) {
  const auto tiles = graph.getTarget().getNumTiles();
  const auto products = layer.type == poplar::HALF ? HALF_PRODUCTS : FLOAT_PRODUCTS;
  const auto cycles = flopsOf(layer) / 2 / (products * tiles) + layer.steps;
  poplar::detail::KernelCost cost;
  for (unsigned tile = 0; tile != tiles; ++tile) cost.cycles.emplace_back(tile, cycles);
  cost.vertex = vertex;
  return cost;
}

}  // namespace popnn::recurrent
