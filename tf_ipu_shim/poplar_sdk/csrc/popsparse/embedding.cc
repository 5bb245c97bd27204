// Lookups of rows of sparse weights.
#include <popsparse/Embedding.hpp>

#include "popsparse/dynamic_matrix.hpp"

namespace popsparse {
namespace dynamic {

using namespace poputil::library;
using detail::DynamicMatrix;

namespace {

// Calls `visit` with the lookup, the column and the value's number of each value of the rows that are looked up.
template <class Visit>
void forEachValue(const DynamicMatrix &matrix, const detail::Positions &positions, const std::uint32_t *indices,
                  std::size_t lookups, Visit visit) {
  const auto &block = matrix.grid.block;
  std::vector<std::vector<std::size_t>> blocks_of_row(matrix.grid.blockRows());
  for (std::size_t b = 0; b != positions.size(); ++b) blocks_of_row[positions[b].row].push_back(b);
  for (std::size_t lookup = 0; lookup != lookups; ++lookup) {
    if (indices[lookup] >= matrix.grid.rows) continue;
    const auto row = indices[lookup] / block[0], inside = indices[lookup] % block[0];
    for (const auto b : blocks_of_row[row])
      for (std::size_t j = 0; j != block[1]; ++j)
        visit(lookup, positions[b].column * block[1] + j, (b * block[0] + inside) * block[1] + j);
  }
}

DynamicMatrix checked(const std::string &function, const SparseTensor &t, const Tensor &indices,
                      const FullyConnectedParams &params, const OptionFlags &options) {
  checkOptions(function.c_str(), options, sparse_options);
  const auto matrix = detail::matrixOf(params);
  detail::checkMetaInfo(function, t.getMetaInfoTensor(), matrix);
  detail::checkValues(function, t.getNzValuesTensor(), matrix);
  detail::checkTensor(function, "the tensor of indices", indices, {indices.numElements()}, poplar::UNSIGNED_INT);
  return matrix;
}

}  // namespace

Tensor createIndicesTensor(poplar::Graph &graph, const FullyConnectedParams &, std::size_t numIndices,
                           const OptionFlags &options, const poplar::DebugContext &debugContext) {
  checkOptions("popsparse::dynamic::createIndicesTensor", options, sparse_options);
  return poputil::detail::createLinear(graph, poplar::UNSIGNED_INT, {numIndices}, {debugContext, "indices"});
}

Tensor createSliceTensor(poplar::Graph &graph, const poplar::Type &dataType, const FullyConnectedParams &params,
                         std::size_t numIndices, const poplar::DebugContext &debugContext, const OptionFlags &options,
                         PlanningCache *) {
  checkOptions("popsparse::dynamic::createSliceTensor", options, sparse_options);
  return poputil::detail::createLinear(graph, dataType, {numIndices, params.getInputChannels()},
                                       {debugContext, "slices"});
}

Tensor embeddingSlice(poplar::Graph &graph, const SparseTensor &t, const Tensor &indices, Sequence &prog,
                      const FullyConnectedParams &params, const poplar::DebugContext &debugContext,
                      const OptionFlags &options, PlanningCache *) {
  const auto matrix = checked("popsparse::dynamic::embeddingSlice", t, indices, params, options);
  const auto type = t.getNzValuesTensor().elementType();
  const auto lookups = indices.numElements();
  const poplar::DebugContext context{debugContext, "embeddingSlice"};
  const auto out = poputil::detail::createLinear(graph, type, {lookups, matrix.grid.columns}, context);
  poputil::detail::addKernelIfAny(
      graph, prog, context, {t.getMetaInfoTensor(), t.getNzValuesTensor(), indices}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &matrix, const auto &type, const auto &lookups) {
        const auto positions = matrix.decode(static_cast<const std::uint16_t *>(arguments.inputs[0]));
        const auto values = poputil::detail::readFloats(type, arguments.inputs[1], matrix.values());
        std::vector<float> rows(lookups * matrix.grid.columns);
        forEachValue(matrix, positions, static_cast<const std::uint32_t *>(arguments.inputs[2]), lookups,
                     [&](std::size_t lookup, std::size_t column, std::size_t value) {
                       rows[lookup * matrix.grid.columns + column] += values[value];
                     });
        poputil::detail::writeFloats(type, rows.data(), arguments.outputs[0], rows.size());
      }, matrix, type, lookups));
  return out;
}

void embeddingUpdateAdd(poplar::Graph &graph, const SparseTensor &t, const Tensor &slices, const Tensor &indices,
                        const Tensor &scale, Sequence &prog, const FullyConnectedParams &params,
                        const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *) {
  const std::string function = "popsparse::dynamic::embeddingUpdateAdd";
  const auto matrix = checked(function, t, indices, params, options);
  const auto type = t.getNzValuesTensor().elementType(), scale_type = scale.elementType();
  const auto lookups = indices.numElements();
  detail::checkTensor(function, "the tensor of slices", slices, {lookups, matrix.grid.columns}, type);
  detail::checkFloating(function, scale_type);
  detail::checkTensor(function, "the scale", scale.reshape({scale.numElements()}), {1}, scale_type);
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "embeddingUpdateAdd"}, {t.getMetaInfoTensor(), slices, indices, scale},
      {t.getNzValuesTensor()},
      Kernel::of([](const KernelArguments &arguments, const auto &matrix, const auto &type, const auto &scale_type,
                    const auto &lookups) {
        const auto positions = matrix.decode(static_cast<const std::uint16_t *>(arguments.inputs[0]));
        const auto rows = poputil::detail::readFloats(type, arguments.inputs[1], lookups * matrix.grid.columns);
        const auto factor = poputil::detail::readFloats(scale_type, arguments.inputs[3], 1).front();
        auto values = poputil::detail::readFloats(type, arguments.outputs[0], matrix.values());
        forEachValue(matrix, positions, static_cast<const std::uint32_t *>(arguments.inputs[2]), lookups,
                     [&](std::size_t lookup, std::size_t column, std::size_t value) {
                       values[value] += factor * rows[lookup * matrix.grid.columns + column];
                     });
        poputil::detail::writeFloats(type, values.data(), arguments.outputs[0], values.size());
      }, matrix, type, scale_type, lookups));
}

}  // namespace dynamic
}  // namespace popsparse
