// Builds graphs: variables, constants, virtual and replicated graphs, functions.
#include "poplar/graph/state.hpp"

#include <poplar/Device.hpp>

#include <algorithm>
#include <cstring>
#include <set>

namespace poplar {

using namespace detail;

StringRef versionString() { return "3.4.0"; }
StringRef packageHash() { return "tf_ipu_shim"; }

namespace detail {

std::string describe(const Variable& variable) {
  return "variable '" + variable.name + "' (" + variable.type.toString().str() + ", shape " +
         shapeText(variable.shape) + ")";
}

namespace {

std::size_t elementsOf(ArrayRef<std::size_t> shape) { return product({shape.begin(), shape.end()}); }

Tensor newVariable(const std::shared_ptr<GraphState>& graph, Type type, ArrayRef<std::size_t> shape, std::string name) {
  typeSize(type);
  Variable variable;
  variable.name = std::move(name);
  variable.type = type;
  variable.shape.assign(shape.begin(), shape.end());
  variable.count = elementsOf(shape);
  if (variable.count >> index_bits)
    throw tensor_creation_error("addVariable: " + describe(variable) + " has too many elements. Use a smaller shape.");
  graph->variables.push_back(std::move(variable));
  const auto& added = graph->variables.back();
  return makeTensor(type, View(addressOf(graph->variables.size() - 1, 0), added.shape), graph);
}

// `count` values of host data as row-major data of `elements` elements.
std::vector<char> deviceData(const char* operation, Type type, std::size_t elements, const void* values,
                             const TypeTraits& traits, std::size_t count, bool broadcast) {
  const std::size_t size = typeSize(type);
  if (!broadcast && count != elements)
    throw poplar_error(std::string(operation) + ": " + std::to_string(count) + " values were passed for " +
                       std::to_string(elements) + " elements; expected as many. Pass one value for each element.");
  std::vector<char> data(elements * size);
  if (!broadcast) {
    convertElements(values, traits, data.data(), type, elements);
  } else if (elements > 0) {
    convertElements(values, traits, data.data(), type, 1);
    for (std::size_t i = 1; i < elements; ++i) std::memcpy(data.data() + i * size, data.data(), size);
  }
  return data;
}

// Whether the spans, which share no element, are all elements of one variable.
bool coversVariable(const GraphState& graph, const std::vector<Span>& spans) {
  std::size_t count = 0;
  for (const Span& span : spans) {
    if (variableOf(span.address) != variableOf(spans.front().address)) return false;
    count += static_cast<std::size_t>(span.length);
  }
  return !spans.empty() && count == graph.variableAt(spans.front().address).count;
}

// A variable with the elements in the order in which they lie in memory, viewed as the tensor views them.
Tensor cloneRegions(const std::shared_ptr<GraphState>& graph, Type type, const Tensor& tensor, const std::string& name) {
  std::vector<Region> regions = regionsOf(viewOf(tensor));
  std::vector<std::pair<Address, Address>> ranges;
  for (const auto& region : regions)
    ranges.emplace_back(region.address, region.address + static_cast<Address>(region.length));
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::pair<Address, Address>> joined;
  for (const auto& range : ranges) {
    if (joined.empty() || range.first > joined.back().second) joined.push_back(range);
    else joined.back().second = std::max(joined.back().second, range.second);
  }
  std::map<Address, std::size_t> places;  // where each range begins in the clone
  std::size_t total = 0;
  for (const auto& [begin, end] : joined) {
    places[begin] = total;
    total += static_cast<std::size_t>(end - begin);
  }
  const std::size_t sizes[] = {total};
  const Tensor flat = newVariable(graph, type, sizes, name);
  const std::size_t number = graph->variables.size() - 1;
  for (const auto& [begin, end] : joined) {
    const std::size_t place = places[begin];
    const std::size_t first = indexOf(begin), length = static_cast<std::size_t>(end - begin);
    const auto add = [&](std::size_t from, std::size_t to, const unsigned* tile) {
      if (tile) graph->variables[number].tiles.assign(from - first + place, to - first + place, *tile);
    };
    graph->variableAt(begin).tiles.visit(first, first + length, add);
  }
  SpanJoiner joiner;
  for (const auto& region : regions) {
    const auto range = std::prev(places.upper_bound(region.address));
    const std::size_t index = range->second + static_cast<std::size_t>(region.address - range->first);
    joiner.add({addressOf(number, index), static_cast<std::int64_t>(region.length), 1});
  }
  return makeTensor(type, View::fromSpans(joiner.take(), tensor.shape()), graph);
}

std::string nameOf(const DebugContext& context) { return context.getPathName(); }

}  // namespace

}  // namespace detail

Graph::Graph() : Graph(Target()) {}
Graph::Graph(const Target& target, replication_factor factor) : state_(std::make_shared<GraphState>()), target_(target) {
  state_->target = target;
  state_->replicas = factor.value;
  if (factor.value == 0 || target.getNumIPUs() % factor.value != 0)
    throw graph_replication_error("Graph: the replication factor is " + std::to_string(factor.value) +
                                  "; expected a divisor of the target's " + std::to_string(target.getNumIPUs()) +
                                  " IPUs. Pass such a factor.");
  if (factor.value > 1) target_ = target.createVirtualTarget(target.getNumIPUs() / factor.value, target.getTilesPerIPU());
}
Graph::Graph(const Device& device, replication_factor factor) : Graph(device.getTarget(), factor) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

const Target& Graph::getTarget() const { return target_; }
unsigned Graph::getReplicationFactor() const { return state_->replicas; }
std::size_t Graph::elements(ArrayRef<std::size_t> shape) { return elementsOf(shape); }

Tensor Graph::addVariable(const Type& type, ArrayRef<std::size_t> shape, const DebugContext& context) {
  return newVariable(state_, type, shape, nameOf(context));
}

Tensor Graph::addVariable(const Type& type, ArrayRef<std::size_t> shape, VariableMappingMethod mapping,
                          const DebugContext& context) {
  const Tensor tensor = addVariable(type, shape, context);
  if (mapping == VariableMappingMethod::NONE) return tensor;
  const std::size_t tiles = target_.getNumTiles(), count = tensor.numElements();
  const std::size_t part = std::max<std::size_t>((count + tiles - 1) / tiles, 1);
  const Tensor flat = tensor.flatten();
  for (std::size_t begin = 0; begin < count; begin += part)
    setTileMapping(flat.slice(begin, std::min(begin + part, count)), static_cast<unsigned>(begin / part));
  return tensor;
}

Tensor Graph::addConstantValues(const Type& type, ArrayRef<std::size_t> shape, const void* values,
                                const TypeTraits& traits, std::size_t count, bool broadcast,
                                const DebugContext& context) {
  const Tensor tensor = newVariable(state_, type, shape, nameOf(context));
  auto data = deviceData("addConstant", type, tensor.numElements(), values, traits, count, broadcast);
  state_->variables.back().constant = true;
  state_->variables.back().data = std::move(data);
  return tensor;
}

namespace {
const TypeTraits& halfTraits() {
  static const TypeTraits traits = TypeTraits::make<_Float16>();
  return traits;
}
}  // namespace

Tensor Graph::addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, std::uint16_t value,
                              const DebugContext& context) {
  return addConstantValues(type, shape, &value, halfTraits(), 1, true, context);
}
Tensor Graph::addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, const std::uint16_t* values,
                              const DebugContext& context) {
  return addConstantValues(type, shape, values, halfTraits(), elementsOf(shape), false, context);
}

Tensor Graph::addReplicationIndexConstant(const DebugContext& context) {
  const Tensor tensor = newVariable(state_, UNSIGNED_INT, {}, nameOf(context));
  Variable& variable = state_->variables.back();
  variable.constant = variable.replica_index = true;
  variable.data.resize(sizeof(unsigned));
  return tensor;
}

void Graph::setInitialValues(const Tensor& tensor, const void* values, const TypeTraits& traits, std::size_t count,
                             bool broadcast) {
  const View& view = viewIn(*state_, "setInitialValue", tensor);
  auto data = deviceData("setInitialValue", tensor.elementType(), view.count(), values, traits, count, broadcast);
  if (!tensor.isParallelWriteable())
    throw poplar_error("setInitialValue: the tensor has constants or an element twice. Pass a tensor of variables.");
  state_->initial_values.push_back({view, std::move(data)});
}

void Graph::setInitialValueHalf(const Tensor& tensor, ArrayRef<std::uint16_t> values) {
  setInitialValues(tensor, values.data(), halfTraits(), values.size(), values.size() == 1);
}

Tensor Graph::clone(const Type& type, const Tensor& tensor, const DebugContext& context, TensorCloneMethod method) {
  const bool keep_aliases = method == TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES ||
                            method == TensorCloneMethod::GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES;
  const auto spans = viewIn(*state_, "clone", tensor).spans();
  const bool aliased = findOverlap(spans).has_value();
  std::string name = nameOf(context);
  if (name.empty() && !spans.empty()) name = state_->variableAt(spans.front().address).name;
  if (!keep_aliases && (aliased || method == TensorCloneMethod::CREATE_NEW_ORDER)) {
    const Tensor copy = newVariable(state_, type, tensor.shape(), name);
    setTileMapping(copy, getTileMapping(tensor, false));
    return copy;
  }
  if (!aliased && coversVariable(*state_, spans)) {
    const Variable& original = state_->variableAt(spans.front().address);
    const TileMap tiles = original.tiles;
    newVariable(state_, type, original.shape, name);
    state_->variables.back().tiles = tiles;
    return makeTensor(type, viewOf(tensor).inVariable(state_->variables.size() - 1), state_);
  }
  return cloneRegions(state_, type, tensor, name);
}

Tensor Graph::cloneN(const Type& type, const Tensor& tensor, std::size_t count, const DebugContext& context,
                     TensorCloneMethod method, TensorCloneDuplicationMethod) {
  std::vector<Tensor> clones;
  for (std::size_t i = 0; i < count; ++i) clones.push_back(clone(type, tensor, context, method).expand({0}));
  if (clones.empty()) throw poplar_error("cloneN: the count is 0; expected at least 1. Pass a larger one.");
  return concat(clones);
}

Graph Graph::virtualGraph(Target target, std::vector<unsigned> tiles) const {
  Graph graph;
  graph.state_ = state_;
  graph.target_ = std::move(target);
  graph.tiles_ = std::move(tiles);
  return graph;
}

Graph Graph::createVirtualGraph(const std::vector<unsigned>& tiles) {
  if (tiles.empty()) throw poplar_error("createVirtualGraph: there are no tiles; expected at least 1. Pass some.");
  if (std::set<unsigned>(tiles.begin(), tiles.end()).size() < tiles.size())
    throw poplar_error("createVirtualGraph: a tile is named twice. Pass each tile once.");
  std::vector<unsigned> physical;
  for (unsigned tile : tiles) physical.push_back(convertVirtualTileToPhysicalTile(tile));
  const unsigned count = static_cast<unsigned>(tiles.size());
  const bool whole_ipus = count % target_.getTilesPerIPU() == 0 && count > 0;
  const unsigned ipus = whole_ipus ? count / target_.getTilesPerIPU() : 1;
  return virtualGraph(target_.createVirtualTarget(ipus, count / ipus), std::move(physical));
}

Graph Graph::createVirtualGraph(unsigned lowerTile, unsigned upperTile) {
  if (lowerTile > upperTile || upperTile > target_.getNumTiles())
    throw poplar_error("createVirtualGraph: tiles [" + std::to_string(lowerTile) + "," + std::to_string(upperTile) +
                       ") are not among " + std::to_string(target_.getNumTiles()) + ". Pass a smaller range.");
  std::vector<unsigned> tiles;
  for (unsigned tile = lowerTile; tile < upperTile; ++tile) tiles.push_back(tile);
  return createVirtualGraph(tiles);
}

Graph Graph::createVirtualGraph(unsigned tilesPerIPU) {
  if (tilesPerIPU == 0 || tilesPerIPU > target_.getTilesPerIPU())
    throw poplar_error("createVirtualGraph: " + std::to_string(tilesPerIPU) + " tiles per IPU were asked for; expected 1 to " +
                       std::to_string(target_.getTilesPerIPU()) + ". Pass such a number.");
  std::vector<unsigned> tiles;
  for (unsigned ipu = 0; ipu < target_.getNumIPUs(); ++ipu)
    for (unsigned tile = 0; tile < tilesPerIPU; ++tile)
      tiles.push_back(convertVirtualTileToPhysicalTile(ipu * target_.getTilesPerIPU() + tile));
  return virtualGraph(target_.createVirtualTarget(target_.getNumIPUs(), tilesPerIPU), std::move(tiles));
}

Graph Graph::createReplicatedGraph(unsigned factor) {
  throw graph_replication_error("createReplicatedGraph: a graph with " + std::to_string(factor) +
                                " replicas inside another one is not supported. Pass "
                                "replication_factor to the Graph's constructor.");
}

Graph Graph::getTopLevelGraph() {
  const Target& target = state_->target;
  return virtualGraph(target.createVirtualTarget(target.getNumIPUs() / state_->replicas, target.getTilesPerIPU()), {});
}

unsigned Graph::convertVirtualTileToPhysicalTile(unsigned tile) const {
  if (tile >= target_.getNumTiles())
    throw invalid_tile_mapping("The tile is " + std::to_string(tile) + "; this graph has " +
                               std::to_string(target_.getNumTiles()) + " tiles. Use a lower number.");
  return tiles_.empty() ? tile : tiles_[tile];
}

Tensor Graph::getNonReplicatedTensor(const Tensor& tensor) const {
  if (state_->replicas == 1) return tensor.expand({0});
  throw graph_replication_error("getNonReplicatedTensor: a view of all " + std::to_string(state_->replicas) +
                                " replicas is not supported. Use CrossReplicaCopy.");
}

HostFunction Graph::addHostFunction(StringRef handle, ArrayRef<HostFunctionArgument> inputs,
                                    ArrayRef<HostFunctionArgument> outputs) {
  for (const auto& known : state_->host_functions)
    if (known.handle == handle.str())
      throw graph_object_creation_error("addHostFunction: there is a host function '" + handle.str() +
                                        "'. Choose another handle.");
  state_->host_functions.push_back(
      {handle.str(), {inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}});
  return HostFunction(static_cast<unsigned>(state_->host_functions.size() - 1));
}

Function Graph::addFunction(const program::Program& program) {
  state_->functions.push_back(program);
  return Function(static_cast<unsigned>(state_->functions.size() - 1));
}

}  // namespace poplar
