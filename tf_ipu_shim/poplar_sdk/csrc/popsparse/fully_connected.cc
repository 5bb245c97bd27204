// Fully connected layers with sparse weights.
#include <popsparse/FullyConnected.hpp>

#include "popsparse/dynamic_matrix.hpp"

namespace popsparse {
namespace dynamic {

using namespace poputil::library;
using detail::DynamicMatrix;

namespace {

// The product of the weights, or of the transposed weights, with columns of `dense` for each element of a batch.
Tensor addLayerProduct(poplar::Graph &graph, const char *function, const SparseTensor &weights, const Tensor &dense,
                  bool transposed, const FullyConnectedParams &params, Sequence &prog, const OptionFlags &options,
                  const poplar::DebugContext &debugContext) {
  checkOptions(function, options, sparse_options);
  const auto matrix = detail::matrixOf(params);
  const auto values = weights.getNzValuesTensor();
  detail::checkMetaInfo(function, weights.getMetaInfoTensor(), matrix);
  detail::checkValues(function, values, matrix);
  const auto batch = params.getBatchSize(), rows = matrix.grid.rows, columns = matrix.grid.columns;
  const auto type = values.elementType();
  detail::checkTensor(function, "the dense operand", dense, {batch, transposed ? rows : columns}, type);
  const auto out = poputil::detail::createLinear(graph, type, {batch, transposed ? columns : rows}, debugContext);
  poputil::detail::addKernelIfAny(
      graph, prog, debugContext, {weights.getMetaInfoTensor(), values, dense.transpose()}, {out.transpose()},
      Kernel::of([](const KernelArguments &arguments, const auto &matrix, const auto &transposed, const auto &type,
                    const auto &batch) {
        const auto positions = matrix.decode(static_cast<const std::uint16_t *>(arguments.inputs[0]));
        detail::multiply(matrix.grid, positions, transposed, type, arguments.inputs[1], arguments.inputs[2],
                         arguments.outputs[0], batch);
      }, matrix, transposed, type, batch));
  return out;
}

// The gradients of the values: each block is a product of rows of `gradients` and rows of `inputs`.
void multiplyAtPositions(const DynamicMatrix &matrix, const detail::Positions &positions, const float *gradients,
                         const float *inputs, std::size_t batch, float *result) {
  const auto &block = matrix.grid.block;
  poplar::detail::parallelFor(positions.size(), 64, [&](std::size_t begin, std::size_t end) {
    for (auto b = begin; b != end; ++b)
      for (std::size_t i = 0; i != block[0]; ++i)
        for (std::size_t j = 0; j != block[1]; ++j) {
          const float *gradient = gradients + (positions[b].row * block[0] + i) * batch;
          const float *input = inputs + (positions[b].column * block[1] + j) * batch;
          float sum = 0;
          for (std::size_t k = 0; k != batch; ++k) sum += gradient[k] * input[k];
          result[(b * block[0] + i) * block[1] + j] = sum;
        }
  });
}

}  // namespace

SparseTensor createFullyConnectedWeights(poplar::Graph &graph, const poplar::Type &inputType,
                                         const FullyConnectedParams &params, const poplar::DebugContext &debugContext,
                                         const OptionFlags &options, PlanningCache *) {
  checkOptions("popsparse::dynamic::createFullyConnectedWeights", options, sparse_options);
  return detail::createTensor(graph, inputType, detail::matrixOf(params), {debugContext, "weights"});
}

Tensor createFullyConnectedInput(poplar::Graph &graph, const poplar::Type &inputType,
                                 const FullyConnectedParams &params, const poplar::DebugContext &debugContext,
                                 const OptionFlags &options, PlanningCache *) {
  checkOptions("popsparse::dynamic::createFullyConnectedInput", options, sparse_options);
  return poputil::detail::createLinear(graph, inputType, {params.getBatchSize(), params.getInputChannels()},
                                       {debugContext, "input"});
}

Tensor fullyConnectedFwd(poplar::Graph &graph, const SparseTensor &weights, const Tensor &activations,
                         const FullyConnectedParams &params, Sequence &prog, const poplar::DebugContext &debugContext,
                         const OptionFlags &options, PlanningCache *) {
  return addLayerProduct(graph, "popsparse::dynamic::fullyConnectedFwd", weights, activations, false, params, prog, options,
                    {debugContext, "fullyConnectedFwd"});
}

Tensor fullyConnectedGradA(poplar::Graph &graph, const SparseTensor &weights, const Tensor &gradients,
                           const FullyConnectedParams &params, Sequence &prog,
                           const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *) {
  return addLayerProduct(graph, "popsparse::dynamic::fullyConnectedGradA", weights, gradients, true, params, prog, options,
                    {debugContext, "fullyConnectedGradA"});
}

Tensor fullyConnectedSparseGradW(poplar::Graph &graph, const Tensor weightMetaInfo, const Tensor &gradA,
                                 const Tensor &activations, const FullyConnectedParams &params, Sequence &prog,
                                 const poplar::DebugContext &debugContext, const OptionFlags &options,
                                 PlanningCache *) {
  const std::string function = "popsparse::dynamic::fullyConnectedSparseGradW";
  checkOptions(function.c_str(), options, sparse_options);
  const auto matrix = detail::matrixOf(params);
  const auto type = activations.elementType();
  const auto batch = params.getBatchSize(), rows = matrix.grid.rows, columns = matrix.grid.columns;
  detail::checkMetaInfo(function, weightMetaInfo, matrix);
  detail::checkFloating(function, type);
  detail::checkTensor(function, "the gradient", gradA, {batch, rows}, type);
  detail::checkTensor(function, "the tensor of activations", activations, {batch, columns}, type);
  const poplar::DebugContext context{debugContext, "fullyConnectedSparseGradW"};
  const auto out = poputil::detail::createLinear(graph, type, {matrix.values()}, context);
  poputil::detail::addKernelIfAny(
      graph, prog, context, {weightMetaInfo, gradA.transpose(), activations.transpose()}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &matrix, const auto &type, const auto &rows,
                    const auto &columns, const auto &batch) {
        const auto positions = matrix.decode(static_cast<const std::uint16_t *>(arguments.inputs[0]));
        const auto gradients = poputil::detail::readFloats(type, arguments.inputs[1], rows * batch);
        const auto inputs = poputil::detail::readFloats(type, arguments.inputs[2], columns * batch);
        std::vector<float> result(matrix.values());
        multiplyAtPositions(matrix, positions, gradients.data(), inputs.data(), batch, result.data());
        poputil::detail::writeFloats(type, result.data(), arguments.outputs[0], result.size());
      }, matrix, type, rows, columns, batch));
  return out;
}

std::tuple<unsigned, unsigned, unsigned> fullyConnectedDenseGradWSerialSplits(
    const poplar::Graph &, const poplar::Type &inputType, const FullyConnectedParams &params,
    const OptionFlags &options, PlanningCache *) {
  const char *function = "popsparse::dynamic::fullyConnectedDenseGradWSerialSplits";
  checkOptions(function, options, sparse_options);
  detail::checkFloating(function, inputType);
  detail::matrixOf(params);
  return {1, 1, 1};
}

}  // namespace dynamic
}  // namespace popsparse
