// Computes losses with their gradients, accuracy, and the largest or smallest elements of rows.
#include <popnn/Loss.hpp>
#include <popops/EncodingConstants.hpp>
#include <popops/TopK.hpp>

#include "poputil/library.hpp"

namespace popnn {

using namespace poputil::library;
using poplar::program::Program;

namespace {

void checkOutputs(const Tensor &outputs, const Tensor &expected) {
  if (outputs.rank() != 2 || expected.numElements() != outputs.dim(0) ||
      (expected.elementType() != poplar::UNSIGNED_INT && expected.elementType() != poplar::INT) ||
      !poputil::detail::isFloating(outputs.elementType()))
    fail("popnn::calcLoss", "the outputs have the shape " + poputil::detail::describeShape(outputs.shape()) +
         " and the labels " + poputil::detail::describeShape(expected.shape()),
         "Pass outputs of float or half {batch, classes} and one label of type int or unsigned int for each row");
}

// Writes the loss and the gradient of one row of floats.
void lossOfRow(LossType type, const float *outputs, float *deltas, float &loss, std::size_t classes,
               std::uint32_t label, float scale, float output_scaling) {
  loss = 0;
  if (label == MASKED_LABEL_CODE) return std::fill_n(deltas, classes, 0.0f), void();
  if (type == SUM_SQUARED_LOSS) {
    double sum = 0;
    for (std::size_t i = 0; i != classes; ++i) {
      deltas[i] = outputs[i] - (i == label ? 1.0f : 0.0f);
      sum += 0.5 * deltas[i] * deltas[i];
    }
    loss = static_cast<float>(sum);
    return;
  }
  for (std::size_t i = 0; i != classes; ++i)
    deltas[i] = (outputs[i] - (i == label ? output_scaling : 0.0f)) * (scale / output_scaling);
  if (label < classes) loss = -std::log(outputs[label] / output_scaling + EPS_LOG_N_FLOAT);
}

void addLoss(poplar::Graph &graph, const Tensor &outputs, const Tensor &expected, const Tensor &loss,
             const Tensor &deltas, const std::vector<Tensor> &scales, LossType type, Sequence &prog,
             const poplar::DebugContext &debugContext) {
  checkOutputs(outputs, expected);
  const auto element = outputs.elementType();
  if (loss.numElements() != outputs.dim(0) || deltas.shape() != outputs.shape() || loss.elementType() != element ||
      deltas.elementType() != element)
    fail("popnn::calcLoss", "loss has the shape " + poputil::detail::describeShape(loss.shape()) + " and deltas " +
         poputil::detail::describeShape(deltas.shape()),
         "Pass a loss for each row and deltas of the outputs' shape, in the outputs' type");
  std::vector<Tensor> inputs{outputs, expected};
  for (const auto &scale : scales) {
    if (scale.numElements() != 1 || !poputil::detail::isFloating(scale.elementType()))
      fail("popnn::calcLoss", "a scale is not one float or half", "Pass scalars");
    inputs.push_back(scale.flatten());
  }
  const auto rows = outputs.dim(0), classes = outputs.dim(1);
  const auto scale_type = scales.empty() ? element : scales[0].elementType();
  const auto scaling_type = scales.empty() ? element : scales[1].elementType();
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "loss"}, inputs, {loss, deltas},
      Kernel::of([](const KernelArguments &arguments, const auto &type, const auto &element, const auto &rows,
                    const auto &classes, const auto &scaled, const auto &scale_type, const auto &scaling_type) {
        const auto p = poputil::detail::readFloats(element, arguments.inputs[0], rows * classes);
        const auto *labels = static_cast<const std::uint32_t *>(arguments.inputs[1]);
        const float scale = scaled ? poputil::detail::readFloats(scale_type, arguments.inputs[2], 1)[0] : 1;
        const float scaling = scaled ? poputil::detail::readFloats(scaling_type, arguments.inputs[3], 1)[0] : 1;
        std::vector<float> losses(rows), gradient(rows * classes);
        for (std::size_t row = 0; row != rows; ++row)
          lossOfRow(type, p.data() + row * classes, gradient.data() + row * classes, losses[row], classes, labels[row],
                    scale, scaling);
        poputil::detail::writeFloats(element, losses.data(), arguments.outputs[0], rows);
        poputil::detail::writeFloats(element, gradient.data(), arguments.outputs[1], rows * classes);
      }, type, element, rows, classes, !scales.empty(), scale_type, scaling_type));
}

// The first largest, or smallest, element of each row.
std::pair<Tensor, Tensor> extremes(poplar::Graph &graph, const Tensor &input, bool largest, Sequence &prog,
                                   const poplar::DebugContext &debugContext) {
  if (input.rank() != 2 || input.dim(1) == 0)
    fail("popnn::argMax", "the input has the shape " + poputil::detail::describeShape(input.shape()),
         "Pass a matrix with columns");
  const popops::TopKParams params(1, largest, popops::SortOrder::NONE, true);
  const auto [value, index] = popops::topKWithPermutation(graph, prog, input, params, debugContext);
  return {value.flatten(), index.flatten()};
}

}  // namespace

Program calcLoss(poplar::Graph &graph, const Tensor &modelOutputs, const Tensor &expected, const Tensor &loss,
                 const Tensor &deltas, LossType lossType, const poplar::DebugContext &debugContext) {
  Sequence prog({}, debugContext);
  addLoss(graph, modelOutputs, expected, loss, deltas, {}, lossType, prog, debugContext);
  return prog;
}

Program calcLoss(poplar::Graph &graph, const Tensor &modelOutputs, const Tensor &expected, const Tensor &loss,
                 const Tensor &deltas, const Tensor &deltasScale, const Tensor &modelOutputScaling, LossType lossType,
                 const poplar::DebugContext &debugContext) {
  Sequence prog({}, debugContext);
  addLoss(graph, modelOutputs, expected, loss, deltas, {deltasScale, modelOutputScaling}, lossType, prog, debugContext);
  return prog;
}

Program calcLoss(poplar::Graph &graph, const Tensor &modelOutputs, const Tensor &expected, const Tensor &loss,
                 const Tensor &deltas, const Tensor &deltasScale, const Tensor &modelOutputScaling,
                 const Tensor &numCorrect, LossType lossType, const poplar::DebugContext &debugContext) {
  return Sequence({calcLoss(graph, modelOutputs, expected, loss, deltas, deltasScale, modelOutputScaling, lossType,
                            debugContext),
                   calcAccuracy(graph, modelOutputs, expected, numCorrect, debugContext)},
                  debugContext);
}

Program calcLoss(poplar::Graph &graph, const Tensor &modelOutputs, const Tensor &expected, const Tensor &loss,
                 const Tensor &deltas, const Tensor &numCorrect, LossType lossType,
                 const poplar::DebugContext &debugContext) {
  return Sequence({calcLoss(graph, modelOutputs, expected, loss, deltas, lossType, debugContext),
                   calcAccuracy(graph, modelOutputs, expected, numCorrect, debugContext)},
                  debugContext);
}

Program calcAccuracy(poplar::Graph &graph, const Tensor &modelOutputs, const Tensor &expected,
                     const Tensor &numCorrect, const poplar::DebugContext &debugContext) {
  checkOutputs(modelOutputs, expected);
  if (numCorrect.numElements() != 1 ||
      (numCorrect.elementType() != poplar::UNSIGNED_INT && numCorrect.elementType() != poplar::INT))
    fail("popnn::calcAccuracy", "numCorrect is not one integer", "Pass a scalar of type unsigned int");
  Sequence prog({}, debugContext);
  const auto best = argMax(graph, modelOutputs, prog, debugContext);
  const auto rows = modelOutputs.dim(0);
  poputil::detail::addKernelIfAny(graph, prog, {debugContext, "accuracy"}, {best, expected}, {numCorrect},
                                  Kernel::of([](const KernelArguments &arguments, const auto &rows) {
                                    const auto *found = static_cast<const std::uint32_t *>(arguments.inputs[0]);
                                    const auto *labels = static_cast<const std::uint32_t *>(arguments.inputs[1]);
                                    auto &correct = *static_cast<std::uint32_t *>(arguments.outputs[0]);
                                    correct = 0;
                                    for (std::size_t row = 0; row != rows; ++row) correct += found[row] == labels[row];
                                  }, rows));
  return prog;
}

Tensor argMax(poplar::Graph &graph, const Tensor &input, Sequence &prog, const poplar::DebugContext &debugContext) {
  return extremes(graph, input, true, prog, {debugContext, "argMax"}).second;
}

std::pair<Tensor, Tensor> maxAndArgMax(poplar::Graph &graph, const Tensor &input, Sequence &prog,
                                       const poplar::DebugContext &debugContext) {
  return extremes(graph, input, true, prog, {debugContext, "maxAndArgMax"});
}

Tensor argMin(poplar::Graph &graph, const Tensor &input, Sequence &prog, const poplar::DebugContext &debugContext) {
  return extremes(graph, input, false, prog, {debugContext, "argMin"}).second;
}

std::pair<Tensor, Tensor> minAndArgMin(poplar::Graph &graph, const Tensor &input, Sequence &prog,
                                       const poplar::DebugContext &debugContext) {
  return extremes(graph, input, false, prog, {debugContext, "minAndArgMin"});
}

Tensor topK(poplar::Graph &graph, const Tensor &input, Tensor &indices, unsigned K, bool sort, Sequence &prog,
            const poplar::DebugContext &debugContext) {
  const popops::TopKParams params(K, true, sort ? popops::SortOrder::DESCENDING : popops::SortOrder::NONE, true);
  const auto [values, places] = popops::topKWithPermutation(graph, prog, input, params, debugContext);
  indices = places;
  return values;
}

}  // namespace popnn
