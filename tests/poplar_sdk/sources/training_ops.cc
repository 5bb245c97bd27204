// Custom ops of networks that are trained: neurons, an optimizer, embeddings, sparse layers, suppression of boxes.
#include "op_functions.hpp"

#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Loop.hpp>
#include <popops/Pad.hpp>
#include <popops/Reduce.hpp>
#include <popops/Zero.hpp>
#include <poplin/MatMul.hpp>
#include <popsparse/experimental/BlockSparseMatMul.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

#include <array>
#include <climits>
#include <sstream>

using namespace poplar;
using namespace poplar::program;
namespace pe = popops::expr;

namespace {

using Tensors = std::vector<Tensor>;

// A number of a JSON object.
float numberIn(const std::string& json, const std::string& name) {
  return std::stof(json.substr(json.find(':', json.find('"' + name + '"')) + 1));
}

// The neurons of a layer, its last dimension, lie on as many tiles as there are.
void mapNeurons(Graph& graph, const Tensor& tensor, unsigned tiles) {
  const std::size_t neurons = tensor.dim(tensor.rank() - 1), share = (neurons + tiles - 1) / tiles;
  for (unsigned tile = 0; tile * share < neurons; ++tile)
    graph.setTileMapping(tensor.slice(tile * share, std::min(neurons, (tile + 1) * share), tensor.rank() - 1), tile);
}

}  // namespace

// Spikes of neurons over time: currents [time, batch, neurons] and the neurons' decay.
METADATA(Spikes) {
  allocating_indices = {0, 1};
  is_stateless = is_hashable = true;
}
ALLOCATOR(Spikes) {
  const Tensor tensor = graph.addVariable(type, shape, {debugPrefix, "operand" + std::to_string(operand)});
  mapNeurons(graph, tensor, numberIn(attributes, "tiles"));
  return tensor;
}
BUILD(Spikes) {
  const unsigned tiles = numberIn(attributes, "tiles");
  const Tensor &currents = inputs[0], &decay = inputs[1];
  if (decay.shape() != std::vector<std::size_t>{currents.dim(2)})
    throw poputil::poplibs_error("Spikes: decay has shape " + decay.shapeToString() + "; expected a value per neuron");
  const Type type = currents.elementType();
  Sequence program({}, debugPrefix + "/spikes");
  const auto layer = [&](const std::string& name) {
    const Tensor tensor = graph.addVariable(type, {currents.dim(1), currents.dim(2)}, {debugPrefix, name});
    mapNeurons(graph, tensor, tiles);
    return tensor;
  };
  const Tensor potential = layer("potential"), current = layer("current"), fired = layer("fired");
  const Tensor all = graph.addVariable(type, currents.shape(), {debugPrefix, "all"});
  mapNeurons(graph, all, tiles);
  ComputeSet set = graph.addComputeSet({debugPrefix, "neurons"});
  const auto mapping = graph.getTileMapping(decay);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const Interval& part : mapping[tile])
      for (unsigned row = 0; row < currents.dim(1); ++row) {
        VertexRef vertex = graph.addVertex(set, poputil::templateVertex("Neurons", type));
        graph.connect(vertex["current"], current[row].slice(part));
        graph.connect(vertex["decay"], decay.slice(part));
        graph.connect(vertex["potential"], potential[row].slice(part));
        graph.connect(vertex["fired"], fired[row].slice(part));
        graph.setInitialValue(vertex["threshold"], numberIn(attributes, "threshold"));
        graph.setTileMapping(vertex, tile);
      }
  popops::zero(graph, potential, program, {debugPrefix, "reset"});
  program.add(popops::countedLoop(graph, currents.dim(0), [&](const Tensor& step) {
    Sequence body;
    body.add(Copy(popops::dynamicSlice(graph, currents, step, {0}, {1}, body, {debugPrefix, "in"})[0], current));
    body.add(Execute(set));
    popops::dynamicUpdate(graph, all, fired.expand({0}), step, {0}, {1}, body, {debugPrefix, "out"});
    return body;
  }, {debugPrefix, "time"}));
  outputs.push_back(all);
  return program;
}
GRADIENT(Spikes) {  // as if a neuron passed its current on
  Sequence program;
  outputs.push_back(popops::map(graph, pe::_1 * (pe::Const(1.0f) - pe::_2), {gradients[0], inputs[1]}, program));
  const Tensor products = popops::mul(graph, gradients[0], inputs[0], program);
  outputs.push_back(popops::reduce(graph, products, {0, 1}, popops::Operation::ADD, program, {debugPrefix, "decay"}));
  return program;
}

// An optimizer: weights and means are updated in place.
METADATA(SignDescent) {
  input_to_output_tensor_aliasing = {{0, 0}, {1, 1}};
  is_stateless = is_hashable = true;
}
BUILD(SignDescent) {
  const Tensor weights = inputs[0].flatten(), mean = inputs[1].flatten(), gradient = inputs[2].flatten();
  const auto mapping = graph.getTileMapping(weights);
  ComputeSet set = graph.addComputeSet({debugPrefix, "step"});
  for (unsigned tile = 0; tile < mapping.size(); ++tile) {
    if (mapping[tile].empty()) continue;
    const auto regions = graph.getSortedContiguousRegions(weights, mapping[tile]);
    for (const auto& part : poputil::splitRegionsBetweenWorkers(graph.getTarget(), regions, 2, 4, UINT_MAX, UINT_MAX)) {
      auto vertex = graph.addVertex(set, poputil::templateVertex("SignStep", weights.elementType()),
                                    {{"weights", concat(weights.slices(part))},
                                     {"mean", concat(mean.slices(part))},
                                     {"gradient", concat(gradient.slices(part))},
                                     {"rate", inputs[3]}});
      graph.setInitialValue(vertex["first"], numberIn(attributes, "first"));
      graph.setInitialValue(vertex["second"], numberIn(attributes, "second"));
      graph.setTileMapping(vertex, tile);
    }
  }
  outputs = {inputs[0], inputs[1]};
  return Execute(set, {debugPrefix, "step"});
}

// Rows [positions, size] that are turned by their positions.
namespace {
Program rotary(Graph& graph, const Tensor& x, const Tensor& positions, float sign, Tensors& outputs,
               const DebugContext& context) {
  const Tensor y = graph.clone(x, context);
  poputil::mapTensorLinearly(graph, y, x.dim(1), x.dim(1));
  ComputeSet set = graph.addComputeSet(context);
  const auto mapping = graph.getTileMapping(y);
  for (unsigned tile = 0; tile < mapping.size(); ++tile) {
    Tensors rows, turned, places;
    for (const Interval& part : mapping[tile])
      for (std::size_t row = part.begin() / x.dim(1); row < part.end() / x.dim(1); ++row) {
        rows.push_back(x[row]);
        turned.push_back(y[row]);
        places.push_back(positions[row].expand({0}));
      }
    if (rows.empty()) continue;
    VertexRef vertex = graph.addVertex(set, "Rotary", {{"positions", concat(places)}});
    graph.connect(vertex["rows"], rows);
    graph.connect(vertex["turned"], turned);
    graph.setInitialValue(vertex["sign"], sign);
    graph.setTileMapping(vertex, tile);
  }
  outputs.push_back(y);
  return Execute(set);
}
}  // namespace

METADATA(RotaryRows) { is_stateless = true; }
BUILD(RotaryRows) { return rotary(graph, inputs[0], inputs[1], 1, outputs, {debugPrefix, "rotary"}); }
GRADIENT(RotaryRows) {
  if (input_grad_index != 0) throw poputil::poplibs_error("RotaryRows: positions have no gradient");
  return rotary(graph, gradients[0], inputs[1], -1, outputs, {debugPrefix, "rotary_grad"});
}

// Rows of a table for each group, with plans, and the sums of gradients of equal rows.
METADATA(TakeInGroups) {
  allocating_indices = {0, 1};
  is_stateless = true;
}
ALLOCATOR(TakeInGroups) {
  if (operand == 1)
    return popops::createGroupedIndicesTensor(graph, shape[0], {0}, shape[1], {}, {}, {debugPrefix, "rows"}).squeeze({2});
  return popops::createGroupedSliceableTensor(graph, type, shape[0], {shape[1], shape[2]}, {0}, {1}, {}, {},
                                              {debugPrefix, "table"});
}
BUILD(TakeInGroups) {
  Sequence program;
  const Tensor &table = inputs[0], rows = inputs[1].reinterpret(UNSIGNED_INT).expand({2});
  const auto plan = popops::embedding::plan(graph, table.elementType(), table.dim(0), table.dim(1), table.dim(2),
                                            {rows.dim(1)}, {{"usedForUpdate", "true"}});
  outputs.push_back(
      popops::groupedMultiSlice(graph, table, rows, {0}, {1}, program, plan, {}, {debugPrefix, "take"}).squeeze({2}));
  return program;
}
GRADIENT(TakeInGroups) {
  Sequence program;
  const Tensor sums = graph.clone(inputs[0], {debugPrefix, "sums"});
  popops::zero(graph, sums, program);
  const Tensor one = graph.addConstant(sums.elementType(), {}, 1.0f);
  graph.setTileMapping(one, 0);
  popops::groupedMultiUpdateAdd(graph, sums, gradients[0].expand({2}), inputs[1].reinterpret(UNSIGNED_INT).expand({2}),
                                one, {0}, {1}, program, popops::SlicePlan(), {}, {debugPrefix, "add"});
  outputs.push_back(sums);
  return program;
}

// A product with a matrix of 32 x 24 that has only some of its blocks of 8 x 8.
METADATA(BlockSparse) { is_stateless = true; }
BUILD(BlockSparse) {
  Sequence program;
  std::vector<unsigned char> mask;
  for (const char bit : attributes) mask.push_back(bit == '1');
  const std::array<int, 3> sizes{static_cast<int>(inputs[0].dim(0)), 32, 24}, blocks{8, 8, 8};
  const popsparse::experimental::BSMatMulParams params(sizes, blocks, mask, false, FLOAT, FLOAT, FLOAT);
  outputs.push_back(popsparse::experimental::bsMatMul(graph, params, program, inputs[0], inputs[1], {}, {debugPrefix}));
  return program;
}

// The middle of images, by views; its gradient has zeros around it.
METADATA(Middle) { is_stateless = is_hashable = true; }
BUILD(Middle) {
  const std::size_t size = std::stoul(attributes), top = (inputs[0].dim(1) - size) / 2;
  outputs.push_back(inputs[0].slice(top, top + size, 1).slice(top, top + size, 2));
  return Sequence();
}
GRADIENT(Middle) {
  const std::ptrdiff_t above = (inputs[0].dim(1) - results[0].dim(1)) / 2;
  const std::ptrdiff_t below = inputs[0].dim(1) - results[0].dim(1) - above;
  outputs.push_back(popops::pad(graph, gradients[0], {0, above, above, 0}, {0, below, below, 0}));
  return Sequence();
}

// The best boxes of each image, on a tile of its own.
METADATA(Suppress) { is_stateless = true; }
BUILD(Suppress) {
  std::istringstream words(attributes);
  std::size_t kept = 0;
  float overlap = 0;
  words >> kept >> overlap;
  const std::size_t images = inputs[0].dim(0);
  const Tensor boxes = graph.clone(inputs[0]), scores = graph.clone(inputs[1]);
  const Tensor indices = graph.addVariable(INT, {images, kept}, {debugPrefix, "kept"});
  const Tensor counts = graph.addVariable(INT, {images}, {debugPrefix, "counts"});
  Sequence program({Copy(inputs[0], boxes), Copy(inputs[1], scores)});
  ComputeSet set = graph.addComputeSet({debugPrefix, "suppress"});
  for (unsigned image = 0; image < images; ++image) {
    auto vertex = graph.addVertex(set, "Suppression", {{"boxes", boxes[image].flatten()},
                                                       {"scores", scores[image]},
                                                       {"kept", indices[image]},
                                                       {"count", counts[image]}});
    graph.setInitialValue(vertex["overlap"], overlap);
    graph.setTileMapping(vertex, image);
    for (const Tensor& part : {boxes[image], scores[image], indices[image], counts[image]})
      graph.setTileMapping(part, image);
  }
  program.add(Execute(set));
  outputs = {indices, counts};
  return program;
}
