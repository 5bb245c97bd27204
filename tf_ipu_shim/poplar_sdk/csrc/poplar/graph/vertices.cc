// Adds vertices to graphs, connects their fields to tensors and sets their values.
#include "poplar/graph/state.hpp"

#include <poplar/VertexIntrospector.hpp>
#include <poplar/detail/vertex_table.hpp>

#include <algorithm>
#include <cstring>
#include <set>

namespace poplar {

using namespace detail;

namespace {

// Without the spaces that C++ allows around the arguments of a template.
std::string normalised(StringRef name) {
  std::string text;
  const auto is_mark = [](char c) { return c == ',' || c == '<' || c == '>'; };
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == ' ' && (text.empty() || is_mark(text.back()) || i + 1 == name.size() || is_mark(name[i + 1]))) continue;
    text += name[i];
  }
  return text;
}

// The vertex types of a name without namespaces and arguments of templates, for a message.
std::string similarTypes(const GraphState& graph, const std::string& name) {
  const auto bare = [](std::string text) {
    text = text.substr(0, text.find('<'));
    const auto colon = text.rfind(':');
    return colon == std::string::npos ? text : text.substr(colon + 1);
  };
  std::set<std::string> found;
  for (const CodeletLibrary& library : *graph.program_codelets)
    for (std::size_t i = 0; i < library.table->count; ++i)
      if (bare(library.table->vertices[i].name) == bare(name)) found.insert(library.table->vertices[i].name);
  std::string text;
  for (const auto& type : found) text += (text.empty() ? "; they have " : ", ") + type;
  return text;
}

Type typeOf(const Field& field) {
  static const Type all[] = {BOOL, CHAR, UNSIGNED_CHAR, SIGNED_CHAR, UNSIGNED_SHORT, SHORT, UNSIGNED_INT, INT,
                             UNSIGNED_LONGLONG, LONGLONG, HALF, FLOAT, DOUBLE, QUARTER};
  for (const Type& type : all)
    if (type.toString() == field.type) return type;
  return Type();
}

// `long` of this CPU is `long long` of an IPU.
Type onDevice(Type type) { return type == LONG ? LONGLONG : type == UNSIGNED_LONG ? UNSIGNED_LONGLONG : type; }

struct Place {
  VertexState& vertex;
  const Field& field;
  FieldState& state;
  std::string text() const { return std::string("Field '") + field.name + "' of vertex type " + vertex.type->name; }
};

std::size_t indexOfField(const Vertex& type, const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < type.field_count; ++i) {
    if (name == type.fields[i].name) return i;
    names += (i ? ", " : "") + std::string(type.fields[i].name);
  }
  throw unknown_field("Vertex type " + std::string(type.name) + " has no field '" + name + "'; it has: " + names +
                      ". Use one of these.");
}

Place placeOf(GraphState& graph, const FieldRef& reference) {
  if (reference.vertex() >= graph.vertices.size()) throw unknown_field("The field's vertex is not of this graph.");
  VertexState& vertex = graph.vertices[reference.vertex()];
  const std::size_t index = indexOfField(*vertex.type, reference.name());
  return {vertex, vertex.type->fields[index], vertex.fields[index]};
}

std::vector<Edge> edgesOf(const Place& place, const Tensor& tensor) {
  if (place.field.kind == FieldKind::Value)
    throw graph_connection_error(place.text() + " is a plain member; a tensor cannot be connected. Use setInitialValue.");
  if (onDevice(typeOf(place.field)) != onDevice(tensor.elementType()))
    throw type_error(place.text() + " has type " + place.field.type + "; the tensor has type " +
                     tensor.elementType().toString().str() + ". Connect a tensor of the field's type.");
  std::vector<Edge> edges;
  if (place.field.depth < 2) {
    if (tensor.rank() > 1 && (place.field.depth > 0 || tensor.numElements() != 1))
      throw graph_connection_error(place.text() + " is a " + (place.field.depth == 0 ? "single element" : "vector") +
                                   "; the tensor has shape " + tensor.shapeToString() +
                                   ". Connect a tensor of rank 1: call flatten() on it.");
    return {{viewOf(tensor.flatten()), tensor.elementType()}};
  }
  if (place.field.fixed_size == 1) {  // a vector of single elements
    for (std::size_t i = 0; i < tensor.numElements(); ++i)
      edges.push_back({viewOf(tensor.flatten().slice(i, i + 1)), tensor.elementType()});
    return edges;
  }
  if (tensor.rank() < 2)
    throw graph_connection_error(place.text() + " is a vector of vectors; the tensor has shape " +
                                 tensor.shapeToString() + ". Connect a tensor of rank 2, or a list of tensors.");
  for (std::size_t i = 0; i < tensor.dim(0); ++i) edges.push_back({viewOf(tensor[i].flatten()), tensor.elementType()});
  return edges;
}

void checkSizes(const Place& place, const std::vector<Edge>& edges) {
  const std::size_t expected = place.field.depth == 0 ? 1 : place.field.fixed_size;
  for (const Edge& edge : edges)
    if (expected && edge.view.count() != expected)
      throw graph_connection_error(place.text() + " has " + std::to_string(expected) + " elements; the tensor has " +
                                   std::to_string(edge.view.count()) + ". Connect a tensor of that size.");
}

// An index or size of a vector that no tile's memory can hold.
void checkFits(const GraphState& graph, const Place& place, const char* what, std::size_t number) {
  if (number > graph.target.getBytesPerTile())
    throw graph_connection_error(place.text() + ": the " + what + " is " + std::to_string(number) +
                                 "; a tile has memory for at most " + std::to_string(graph.target.getBytesPerTile()) +
                                 " elements. Pass a smaller one.");
}

VertexState& vertexOf(GraphState& graph, const char* function, const VertexRef& vertex) {
  if (!vertex.isNull() && vertex.getId() < graph.vertices.size()) return graph.vertices[vertex.getId()];
  throw poplar_error(std::string(function) + ": the vertex is not of this graph. Pass one of addVertex.");
}

void connectAll(Place place, std::vector<Edge> edges) {
  if (place.state.connected && place.state.whole)
    throw graph_connection_error(place.text() + " is connected already. Connect each field once.");
  place.state.connected = place.state.whole = true;
  place.state.rows.assign(edges.begin(), edges.end());
}

void connectElement(Place place, std::size_t index, Edge edge) {
  if (place.state.whole) throw graph_connection_error(place.text() + " is connected already. Connect each field once.");
  auto& rows = place.state.rows;
  if (index >= rows.size()) rows.resize(index + 1);
  if (rows[index])
    throw graph_connection_error(place.text() + " is connected already at index " + std::to_string(index) +
                                 ". Connect each element once.");
  rows[index] = std::move(edge);
  place.state.connected = true;
}

}  // namespace

bool Graph::hasCodelet(StringRef vertexType) const { return findVertexType(*state_, normalised(vertexType)); }

VertexRef Graph::addVertex(ComputeSet computeSet, StringRef vertexType) {
  const Vertex* const found = findVertexType(*state_, normalised(vertexType));
  if (!found)
    throw unknown_vertex_type("addVertex: vertex type '" + vertexType.str() + "' is in none of the " +
                              std::to_string(state_->program_codelets->size()) + " codelet files of the graph" +
                              similarTypes(*state_, normalised(vertexType)) + ". Call addCodelets with the file that has it; a template must "
                              "be instantiated there. A vertex within #ifdef __IPU__ is left out: codelets run on this "
                              "CPU. A script that looks at the type of its target finds the CPU's vertices with "
                              "TF_POPLAR_FLAGS=--use_ipu_model.");
  if (computeSet.isNull() || computeSet.getId() >= state_->compute_sets.size())
    throw graph_object_creation_error("addVertex: the compute set is not of this graph. Pass one of addComputeSet.");
  VertexState vertex;
  vertex.type = found;
  vertex.compute_set = computeSet.getId();
  vertex.fields.resize(vertex.type->field_count);
  const auto id = static_cast<unsigned>(state_->vertices.size());
  state_->vertices.push_back(std::move(vertex));
  state_->compute_sets[computeSet.getId()].vertices.push_back(id);
  return VertexRef(id);
}

VertexRef Graph::addVertex(ComputeSet computeSet, StringRef vertexType, ArrayRef<ConnectionDesc> connections) {
  const VertexRef vertex = addVertex(computeSet, vertexType);
  for (const auto& connection : connections) {
    const FieldRef field = vertex[connection.name];
    if (!connection.scalar.empty()) connectValues(field, connection.scalar.data(), connection.traits, 1, true);
    else if (connection.single) connect(field, connection.tensors[0]);
    else connect(field, ArrayRef<Tensor>(connection.tensors));
  }
  return vertex;
}

ComputeSet Graph::addComputeSet(const DebugContext& context) {
  state_->compute_sets.push_back({context.getPathName(), {}});
  return ComputeSet(static_cast<unsigned>(state_->compute_sets.size() - 1));
}

std::size_t Graph::getNumVertices() const { return state_->vertices.size(); }

void Graph::connect(const FieldRef& field, const Tensor& tensor) {
  const Place place = placeOf(*state_, field);
  viewIn(*state_, "connect", tensor);
  if (field.isIndexed()) {
    checkFits(*state_, place, "index", field.getIndex());
    const Tensor flat = tensor.flatten();
    const auto edge = Edge{viewOf(flat), tensor.elementType()};
    edgesOf(place, place.field.depth < 2 ? flat : flat.expand({0}));
    if (place.field.depth < 2 && tensor.numElements() != 1)
      throw graph_connection_error(place.text() + " has single elements; the tensor for index " +
                                   std::to_string(field.getIndex()) + " has shape " + tensor.shapeToString() +
                                   ". Connect one element.");
    if (place.field.depth == 2) checkSizes(place, {edge});
    return connectElement(place, field.getIndex(), edge);
  }
  auto edges = edgesOf(place, tensor);
  checkSizes(place, edges);
  connectAll(place, std::move(edges));
}

void Graph::connect(const FieldRef& field, ArrayRef<Tensor> tensors) {
  const Place place = placeOf(*state_, field);
  if (place.field.depth < 2) {
    std::vector<Tensor> flat;
    for (const Tensor& tensor : tensors) {
      viewIn(*state_, "connect", tensor);
      flat.push_back(tensor.flatten());
    }
    if (flat.empty()) throw graph_connection_error(place.text() + " was passed no tensor. Connect at least one.");
    return connect(field, concat(flat));
  }
  std::vector<Edge> edges;
  for (const Tensor& tensor : tensors) {
    viewIn(*state_, "connect", tensor);
    for (auto& edge : edgesOf(place, tensor.flatten().expand({0}))) edges.push_back(std::move(edge));
  }
  checkSizes(place, edges);
  connectAll(place, std::move(edges));
}

void Graph::connectValues(const FieldRef& field, const void* values, const TypeTraits& traits, std::size_t count,
                          bool single) {
  const Place place = placeOf(*state_, field);
  if (place.field.kind == FieldKind::Value) return setInitialValues(field, values, traits, count, single);
  const std::size_t shape[] = {count};
  const Tensor constant = addConstantValues(typeOf(place.field), shape, values, traits, count, false, {"<const>"});
  state_->variables.back().of_vertex = true;
  connect(field, constant);
}

void Graph::setFieldSize(const FieldRef& field, std::size_t size) {
  Place place = placeOf(*state_, field);
  checkFits(*state_, place, "size", size);
  const std::size_t fixed = place.field.depth == 2 ? 0 : place.field.fixed_size ? place.field.fixed_size : place.field.depth == 0;
  if (fixed && size != fixed)
    throw graph_connection_error(place.text() + " has " + std::to_string(fixed) + " elements; setFieldSize was passed " +
                                 std::to_string(size) + ". Pass its size, or leave the call out.");
  if (place.field.kind == FieldKind::Value) {
    place.state.value.resize(size * place.field.type_size);
    place.state.value_count = size;
    place.state.has_value = true;
  } else if (place.state.rows.size() > size) {
    throw graph_connection_error(place.text() + " has connections at more than " + std::to_string(size) +
                                 " indices. Call setFieldSize with a larger size.");
  } else {
    place.state.rows.resize(size);
  }
}

void Graph::setInitialValues(const FieldRef& field, const void* values, const TypeTraits& traits, std::size_t count,
                             bool single) {
  Place place = placeOf(*state_, field);
  if (place.field.kind != FieldKind::Value) return connectValues(field, values, traits, count, single);
  const Type type = typeOf(place.field);
  if (type == Type())
    throw type_error(place.text() + " has a type that setInitialValue cannot set. Use a number or a Vector of numbers.");
  const std::size_t expected = place.field.depth == 0 && !place.field.fixed_size ? 1 : place.field.fixed_size;
  if (field.isIndexed()) {
    checkFits(*state_, place, "index", field.getIndex());
    if (expected && field.getIndex() >= expected)
      throw poplar_error("setInitialValue: " + place.text() + " has " + std::to_string(expected) + " elements; the index " +
                         "is " + std::to_string(field.getIndex()) + ". Pass a lower one.");
    const std::size_t end = (field.getIndex() + 1) * place.field.type_size;
    if (place.state.value.size() < end) place.state.value.resize(end);
    place.state.value_count = std::max(place.state.value_count, field.getIndex() + 1);
    convertElements(values, traits, place.state.value.data() + end - place.field.type_size, type, 1);
  } else {
    if (expected && count != expected)
      throw poplar_error("setInitialValue: " + place.text() + " has " + std::to_string(expected) + " elements; " +
                         std::to_string(count) + " values were passed. Pass one for each element.");
    place.state.value.resize(count * place.field.type_size);
    place.state.value_count = count;
    convertElements(values, traits, place.state.value.data(), type, count);
  }
  place.state.has_value = true;
}

void Graph::setInitialValueHalf(const FieldRef& field, std::uint16_t value) {
  static const TypeTraits traits = TypeTraits::make<_Float16>();
  setInitialValues(field, &value, traits, 1, true);
}

void Graph::setTileMapping(VertexRef vertex, unsigned tile) {
  vertexOf(*state_, "setTileMapping", vertex).tile = convertVirtualTileToPhysicalTile(tile);
}

void Graph::setPerfEstimate(const VertexRef& vertex, std::uint64_t cycles, std::uint64_t flops) {
  setPerfEstimate(vertex, VertexPerfEstimate(cycles, flops));
}
void Graph::setPerfEstimate(const VertexRef& vertex, const VertexPerfEstimate& estimate) {
  vertexOf(*state_, "setPerfEstimate", vertex).estimate = estimate;
}
VertexPerfEstimate Graph::getPerfEstimate(const VertexRef& vertex) const {
  const auto& estimate = vertexOf(*state_, "getPerfEstimate", vertex).estimate;
  if (estimate) return *estimate;
  throw missing_perf_estimate("getPerfEstimate: the vertex has no estimate. Call setPerfEstimate before.");
}

void Graph::registerPerfEstimator(StringRef vertexType, PerfEstimateFunc function) {
  if (!function)
    throw poplar_error("registerPerfEstimator: there is no function for '" + vertexType.str() + "'. Pass one.");
  state_->estimators[normalised(vertexType)] = std::move(function);
}

std::optional<VertexPerfEstimate> detail::registeredEstimate(const GraphState& graph, const VertexState& vertex) {
  if (vertex.estimate) return vertex.estimate;
  const auto found = graph.estimators.find(vertex.type->name);
  if (found == graph.estimators.end()) return std::nullopt;
  return found->second(VertexIntrospector(vertex), graph.target);
}

FieldData VertexIntrospector::getFieldInfo(const std::string& name) const {
  const std::size_t index = indexOfField(*vertex_.type, name);
  const Field& field = vertex_.type->fields[index];
  const FieldState& state = vertex_.fields[index];
  FieldData result;
  result.name_ = "Field '" + name + "' of vertex type " + vertex_.type->name;
  result.type_ = typeOf(field);
  result.count_ = state.value_count;
  if (state.has_value && result.type_ != Type()) result.values_ = &state.value;
  for (const auto& row : state.rows) {
    result.count_ += row ? row->view.count() : 0;
    if (field.depth == 2) result.sizes_.push_back(row ? row->view.count() : 0);
  }
  return result;
}

std::size_t FieldData::getSizeAtIndex(std::size_t index) const {
  if (index < sizes_.size()) return sizes_[index];
  throw unknown_field("getSizeAtIndex: " + name_ + " has " + std::to_string(sizes_.size()) + " vectors; there is no " +
                      std::to_string(index) + ". Pass an index of a vector of vectors.");
}

std::size_t FieldData::valueCount() const {
  if (values_) return count_;
  throw unknown_field("getInitialValue: " + name_ + " has no value. Set one by setInitialValue.");
}

namespace {

const Field& fieldOf(const GraphState& graph, const std::string& function, StringRef vertexType, StringRef field) {
  const Vertex* const vertex = findVertexType(graph, normalised(vertexType));
  if (!vertex)
    throw unknown_vertex_type(function + ": there is no vertex type '" + vertexType.str() +
                              "'. Call addCodelets with the file that has it.");
  for (std::size_t i = 0; i < vertex->field_count; ++i)
    if (field == vertex->fields[i].name) return vertex->fields[i];
  throw unknown_field(function + ": vertex type '" + vertexType.str() + "' has no field '" + field.str() +
                      "'. Pass the name of one of its members.");
}

}  // namespace

unsigned Graph::getMaxFieldDim(StringRef vertexType, StringRef field, unsigned dimension) const {
  const unsigned depth = static_cast<unsigned>(fieldOf(*state_, "getMaxFieldDim", vertexType, field).depth);
  if (dimension >= depth)
    throw index_error("getMaxFieldDim: field '" + field.str() + "' of vertex type '" + vertexType.str() + "' has " +
                      std::to_string(depth) + " dimensions; the dimension is " + std::to_string(dimension) +
                      ". Pass a lower one.");
  return 0xFFFFFFFFu;
}

double Graph::getMaxVertexFieldValue(StringRef vertexType, StringRef field) const {
  const Type type = typeOf(fieldOf(*state_, "getMaxVertexFieldValue", vertexType, field));
  if (type == HALF) return 65504;
  if (type == FLOAT) return 3.4028234663852886e38;
  const bool has_sign = type == INT || type == SHORT || type == SIGNED_CHAR || type == CHAR || type == LONGLONG;
  const int bits = type == BOOL ? 1 : static_cast<int>(8 * typeSize(type)) - (has_sign ? 1 : 0);
  return static_cast<double>(bits == 64 ? ~0ULL : (1ULL << bits) - 1);
}

}  // namespace poplar
