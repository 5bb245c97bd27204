// Creates the tensors of recurrent layers, mapped linearly, and counts their bytes by tile.
#include <popnn/Rnn.hpp>

#include "poputil/library.hpp"

namespace popnn {
namespace rnn {

using namespace poputil::library;
using poplar::DebugContext;
using poplar::Graph;

namespace {

// A tile holds at least this much of a step.
constexpr std::size_t GRAIN_BYTES = 128;

std::size_t bytesOf(const Graph &graph, const RnnParams &params, std::size_t size) {
  return params.batchSize * size * graph.getTarget().getTypeSize(params.dataType);
}

std::size_t tilesOf(const Graph &graph, const RnnParams &params, std::size_t size) {
  const std::size_t tiles = (bytesOf(graph, params, size) + GRAIN_BYTES - 1) / GRAIN_BYTES;
  return std::clamp<std::size_t>(tiles, 1, graph.getTarget().getNumTiles());
}

std::size_t bytesPerTile(const Graph &graph, const RnnParams &params, std::size_t size) {
  const std::size_t tiles = tilesOf(graph, params, size);
  return (bytesOf(graph, params, size) + tiles - 1) / tiles;
}

}  // namespace

std::size_t RnnParams::getMaxShards(const Graph &graph) const {
  const std::size_t tiles = std::max(tilesOf(graph, *this, layerSizes.at(0)), tilesOf(graph, *this, layerSizes.at(1)));
  return std::clamp<std::size_t>(graph.getTarget().getNumTiles() / tiles, 1, std::max<std::size_t>(maxTimeSteps, 1));
}

std::size_t RnnParams::getInputBytesPerTile(const Graph &graph) const {
  return bytesPerTile(graph, *this, layerSizes.at(0));
}

std::size_t RnnParams::getOutputBytesPerTile(const Graph &graph) const {
  return bytesPerTile(graph, *this, layerSizes.at(1));
}

Tensor createInitialState(Graph &graph, const RnnParams &params, bool isOutput, unsigned multiple, unsigned,
                          const DebugContext &debugContext) {
  return poputil::detail::createLinear(graph, params.dataType,
                                       {multiple, params.batchSize, params.layerSizes.at(isOutput ? 1 : 0)},
                                       {debugContext, "initialState"});
}

Tensor createRecurrentTensor(Graph &graph, const RnnParams &params, unsigned size, unsigned,
                             const DebugContext &debugContext) {
  return poputil::detail::createLinear(graph, params.dataType, {params.maxTimeSteps, params.batchSize, size},
                                       {debugContext, "sequence"});
}

Tensor createInputTensor(Graph &graph, const RnnParams &params, unsigned numShards, const DebugContext &debugContext) {
  return createRecurrentTensor(graph, params, static_cast<unsigned>(params.layerSizes.at(0)), numShards, debugContext);
}

Tensor createOutputTensor(Graph &graph, const RnnParams &params, unsigned numShards, const DebugContext &debugContext) {
  return createOutputTensor(graph, params, 1, numShards, debugContext);
}

Tensor createOutputTensor(Graph &graph, const RnnParams &params, unsigned multiple, unsigned numShards,
                          const DebugContext &debugContext) {
  const auto size = static_cast<unsigned>(params.layerSizes.at(1));
  std::vector<Tensor> parts;
  for (unsigned i = 0; i != multiple; ++i)
    parts.push_back(createRecurrentTensor(graph, params, size, numShards, debugContext));
  return concat(parts);
}

Tensor shiftRnnTensor(Graph &graph, const RnnParams &params, const Tensor &tBase, const Tensor &tSingle, Sequence &prog,
                      unsigned, const DebugContext &debugContext) {
  if (tBase.rank() == 0 || tBase.dim(0) != params.maxTimeSteps)
    poputil::detail::fail("popnn::rnn::shiftRnnTensor", "tBase has the shape " +
                          poputil::detail::describeShape(tBase.shape()) + "; expected " +
                          std::to_string(params.maxTimeSteps) + " steps", "Pass the tensor of a whole sequence");
  const auto first = graph.clone(tBase.slice(0, 1), {debugContext, "first"});
  prog.add(poplar::program::Copy(tSingle.flatten(), first.flatten(), false, {debugContext, "first"}));
  return concat(first, tBase.slice(0, tBase.dim(0) - 1));
}

}  // namespace rnn
}  // namespace popnn
