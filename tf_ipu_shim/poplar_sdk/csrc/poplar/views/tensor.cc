// Implements poplar::Tensor: slices, reshapes, concatenations and other views, with checks of their arguments.
#include "poplar/graph/state.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <ostream>
#include <set>
#include <sstream>

namespace poplar {

namespace detail {

std::string shapeText(const View::Shape& shape) {
  std::string text = "{";
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d ? "," : "") + std::to_string(shape[d]);
  return text + "}";
}

const View& viewOf(const Tensor& tensor) { return tensor.impl().view; }

const View& viewIn(const GraphState& graph, const char* function, const Tensor& tensor) {
  if (!tensor.valid())
    throw tensor_creation_error(std::string(function) + ": the tensor is empty: it was made by Tensor(). Pass one that " +
                                "the graph created.");
  if (tensor.impl().graph.lock().get() != &graph)
    throw poplar_error(std::string(function) + ": the tensor with shape " + tensor.shapeToString() +
                       " is of another graph; expected one of this graph. Create it with this graph, or copy it there " +
                       "through the host.");
  return viewOf(tensor);
}

Tensor makeTensor(Type type, View view, const std::shared_ptr<GraphState>& graph) {
  return Tensor(std::make_shared<const TensorImpl>(TensorImpl{type, std::move(view), graph}));
}

std::vector<Region> regionsOf(const View& view) {
  std::vector<Region> regions;
  std::size_t position = 0;
  const auto add = [&](Address address, std::size_t length) {
    if (!regions.empty() && regions.back().address + static_cast<Address>(regions.back().length) == address) {
      regions.back().length += length;
    } else {
      regions.push_back({position, address, length});
    }
    position += length;
  };
  for (const Span& span : view.spans()) {
    if (span.step == 1) {
      add(span.address, span.length);
    } else {
      for (std::int64_t i = 0; i < span.length; ++i) add(span.address + i * span.step, 1);
    }
  }
  return regions;
}

namespace {

[[noreturn]] void fail(const char* operation, const Tensor& tensor, const std::string& rest) {
  throw poplar_error(std::string(operation) + ": the tensor has shape " + tensor.shapeToString() + "; " + rest);
}

Tensor like(const Tensor& tensor, View view) {
  return Tensor(std::make_shared<const TensorImpl>(TensorImpl{tensor.elementType(), std::move(view), tensor.impl().graph}));
}

void checkDimension(const char* operation, const Tensor& tensor, std::size_t dimension) {
  if (dimension >= tensor.rank())
    fail(operation, tensor, "dimension " + std::to_string(dimension) + " is not below its rank. Pass a smaller one.");
}

}  // namespace

}  // namespace detail

using namespace detail;

const TensorImpl& Tensor::impl() const {
  if (!impl_) throw tensor_creation_error("The tensor is empty: it was made by Tensor(). Use one that a graph created.");
  return *impl_;
}

Type Tensor::elementType() const { return impl().type; }
std::vector<std::size_t> Tensor::shape() const { return impl().view.shape(); }
unsigned Tensor::rank() const { return static_cast<unsigned>(impl().view.shape().size()); }
std::size_t Tensor::numElements() const { return impl().view.count(); }

std::size_t Tensor::dim(unsigned index) const {
  checkDimension("dim", *this, index);
  return impl().view.shape()[index];
}

Tensor Tensor::operator[](std::size_t index) const {
  checkDimension("operator[]", *this, 0);
  if (index >= dim(0)) fail("operator[]", *this, "index " + std::to_string(index) + " is outside dimension 0.");
  return slice(index, index + 1, 0).squeeze({0});
}

Tensor Tensor::index(ArrayRef<std::size_t> indices) const {
  Tensor result = *this;
  for (std::size_t index : indices) result = result[index];
  return result;
}

Tensor Tensor::slice(std::size_t begin, std::size_t end, unsigned dimension) const {
  checkDimension("slice", *this, dimension);
  std::vector<std::size_t> from(rank(), 0), to = shape();
  from[dimension] = begin;
  to[dimension] = end;
  return slice(from, to);
}

Tensor Tensor::slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const {
  if (begin.size() != end.size() || begin.size() > rank())
    fail("slice", *this, std::to_string(begin.size()) + " begins and " + std::to_string(end.size()) +
                             " ends were passed; expected as many of both, at most its rank.");
  std::vector<std::size_t> from(rank(), 0), to = shape();
  for (std::size_t d = 0; d < begin.size(); ++d) {
    if (begin[d] > end[d] || end[d] > to[d])
      fail("slice", *this, "[" + std::to_string(begin[d]) + "," + std::to_string(end[d]) + ") is not within dimension " +
                               std::to_string(d) + ".");
    from[d] = begin[d];
    to[d] = end[d];
  }
  return like(*this, impl().view.slice(from, to));
}

std::vector<Tensor> Tensor::slices(ArrayRef<Interval> regions, unsigned dimension) const {
  std::vector<Tensor> result;
  for (const auto& region : regions) result.push_back(slice(region, dimension));
  return result;
}

std::vector<Tensor> Tensor::slices(const std::vector<std::vector<Interval>>& regions, unsigned dimension) const {
  std::vector<Tensor> result;
  for (const auto& group : regions) {
    const auto parts = slices(group, dimension);
    result.push_back(parts.empty() ? slice(0, 0, dimension) : concat(parts, dimension));
  }
  return result;
}

std::vector<Tensor> Tensor::slices(ArrayRef<unsigned> ids, unsigned dimension) const {
  std::vector<Tensor> result;
  for (unsigned id : ids) result.push_back(slice(id, std::size_t{id} + 1, dimension));
  return result;
}

Tensor Tensor::flatten() const { return like(*this, impl().view.reshape({numElements()})); }

Tensor Tensor::flatten(unsigned begin, unsigned end) const {
  const auto whole = shape();
  if (begin > end || end > rank()) fail("flatten", *this, "the dimensions to join are not within its rank.");
  const std::size_t joined = std::accumulate(whole.begin() + begin, whole.begin() + end, std::size_t{1}, std::multiplies<>());
  const std::size_t sizes[] = {joined};
  return reshapePartial(begin, end, sizes);
}

Tensor Tensor::reshape(ArrayRef<std::size_t> shape) const {
  View::Shape sizes(shape.begin(), shape.end());
  if (product(sizes) != numElements())
    fail("reshape", *this, "shape " + shapeText(sizes) + " does not have as many elements.");
  return like(*this, impl().view.reshape(std::move(sizes)));
}

Tensor Tensor::reshapePartial(unsigned begin, unsigned end, ArrayRef<std::size_t> sizes) const {
  if (begin > end || end > rank()) fail("reshapePartial", *this, "the dimensions to reshape are not within its rank.");
  auto whole = shape();
  whole.erase(whole.begin() + begin, whole.begin() + end);
  whole.insert(whole.begin() + begin, sizes.begin(), sizes.end());
  return reshape(whole);
}

Tensor Tensor::expand(ArrayRef<std::size_t> before) const {
  std::vector<std::size_t> counts(rank() + 1, 0), sizes;
  for (std::size_t d : before) {
    if (d > rank()) fail("expand", *this, "dimension " + std::to_string(d) + " is above its rank.");
    ++counts[d];
  }
  for (unsigned d = 0; d <= rank(); ++d) {
    sizes.insert(sizes.end(), counts[d], 1);
    if (d < rank()) sizes.push_back(dim(d));
  }
  return reshape(sizes);
}

Tensor Tensor::squeeze(ArrayRef<std::size_t> dimensions) const {
  std::set<std::size_t> dropped(dimensions.begin(), dimensions.end());
  std::vector<std::size_t> sizes;
  for (std::size_t d : dropped) {
    checkDimension("squeeze", *this, d);
    if (dim(d) != 1) fail("squeeze", *this, "dimension " + std::to_string(d) + " is not of size 1.");
  }
  for (unsigned d = 0; d < rank(); ++d)
    if (!dropped.count(d)) sizes.push_back(dim(d));
  return reshape(sizes);
}

Tensor Tensor::dimShuffle(ArrayRef<unsigned> permutation) const {
  std::vector<unsigned> sorted(permutation.begin(), permutation.end());
  std::sort(sorted.begin(), sorted.end());
  for (unsigned d = 0; d < sorted.size(); ++d)
    if (sorted[d] != d) fail("dimShuffle", *this, "the permutation does not name each dimension once.");
  if (sorted.size() != rank())
    fail("dimShuffle", *this, "the permutation has " + std::to_string(sorted.size()) + " dimensions.");
  return like(*this, impl().view.permute({permutation.begin(), permutation.end()}));
}

Tensor Tensor::dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const {
  if (source.size() != destination.size())
    fail("dimShufflePartial", *this, "as many sources as destinations are expected.");
  std::vector<unsigned> order(rank(), ~0u);
  std::vector<bool> taken(rank(), false);
  for (std::size_t i = 0; i < source.size(); ++i) {
    checkDimension("dimShufflePartial", *this, std::max(source[i], destination[i]));
    if (taken[source[i]] || order[destination[i]] != ~0u) fail("dimShufflePartial", *this, "a dimension is named twice.");
    order[destination[i]] = source[i];
    taken[source[i]] = true;
  }
  unsigned next = 0;
  for (auto& from : order) {
    if (from != ~0u) continue;
    while (taken[next]) ++next;
    from = next;
    taken[next] = true;
  }
  return dimShuffle(order);
}

Tensor Tensor::dimRoll(unsigned dimension, unsigned to) const { return dimShufflePartial({dimension}, {to}); }

Tensor Tensor::transpose() const {
  std::vector<unsigned> order(rank());
  for (unsigned d = 0; d < rank(); ++d) order[d] = rank() - 1 - d;
  return dimShuffle(order);
}

Tensor Tensor::reverse(unsigned dimension) const {
  checkDimension("reverse", *this, dimension);
  return like(*this, impl().view.reverse(dimension));
}

Tensor Tensor::subSample(unsigned stride, unsigned dimension) const {
  checkDimension("subSample", *this, dimension);
  if (stride == 0) fail("subSample", *this, "the stride is 0; expected at least 1.");
  return like(*this, impl().view.subSample(stride, dimension));
}

Tensor Tensor::broadcast(unsigned count, unsigned dimension) const {
  checkDimension("broadcast", *this, dimension);
  if (count == 0) return slice(0, 0, dimension);
  if (dim(dimension) == 1) return like(*this, impl().view.repeatOne(count, dimension));
  auto sizes = shape();
  sizes[dimension] = product({sizes[dimension], count});
  const Tensor outer = expand({dimension});
  return like(*this, outer.impl().view.repeatOne(count, dimension)).reshape(sizes);
}

Tensor Tensor::upsample(unsigned scale, unsigned dimension, UpsampleMethod) const {
  checkDimension("upsample", *this, dimension);
  auto sizes = shape();
  sizes[dimension] *= scale;
  if (scale == 0) return slice(0, 0, dimension);
  const Tensor inner = expand({std::size_t{dimension} + 1});
  return like(*this, inner.impl().view.repeatOne(scale, dimension + 1)).reshape(sizes);
}

Tensor Tensor::reinterpret(const Type& type) const {
  if (typeSize(type) != typeSize(elementType()))
    fail("reinterpret", *this, "elements of " + elementType().toString().str() + " are not of the size of " +
                                   type.toString().str() + ".");
  return Tensor(std::make_shared<const TensorImpl>(TensorImpl{type, impl().view, impl().graph}));
}

bool Tensor::isContiguous() const { return numElements() == 0 || regionsOf(impl().view).size() == 1; }
bool Tensor::containsAliases() const { return findOverlap(impl().view.spans()).has_value(); }

bool Tensor::containsConstant() const {
  const auto graph = impl().graph.lock();
  const auto spans = impl().view.spans();
  return graph && std::any_of(spans.begin(), spans.end(), [&](const Span& span) { return graph->variableAt(span.address).constant; });
}

bool Tensor::isParallelWriteable() const { return !containsAliases() && !containsConstant(); }

std::vector<Interval> Tensor::getContiguousRegions() const {
  std::vector<Interval> result;
  for (const auto& region : regionsOf(impl().view)) result.emplace_back(region.position, region.position + region.length);
  return result;
}

std::vector<VariableInterval> Tensor::getVarRegions() const {
  std::vector<VariableInterval> result;
  for (const auto& region : regionsOf(impl().view)) {
    const std::size_t index = indexOf(region.address);
    result.emplace_back(VariableRef(static_cast<unsigned>(variableOf(region.address))), Interval(index, index + region.length));
  }
  return result;
}

bool Tensor::getConstantData(void* to, std::size_t, Type type, std::size_t count) const {
  const auto graph = impl().graph.lock();
  if (!graph || type != elementType() || count != numElements()) return false;
  const std::size_t size = typeSize(type);
  auto* out = static_cast<char*>(to);
  for (const auto& region : regionsOf(impl().view)) {
    const Variable& variable = graph->variableAt(region.address);
    if (!variable.constant) return false;
    std::memcpy(out + region.position * size, variable.data.data() + indexOf(region.address) * size, region.length * size);
  }
  return true;
}

std::string Tensor::shapeToString() const { return shapeText(impl().view.shape()); }

std::string Tensor::getDebugStr() const {
  const auto graph = impl().graph.lock();
  std::vector<Address> variables;  // in the order of the elements
  for (const Span& span : viewOf(*this).spans()) {
    const auto variable = variableOf(span.address);
    if (std::find(variables.begin(), variables.end(), variable) == variables.end()) variables.push_back(variable);
  }
  std::string text;
  for (const auto variable : variables)
    text += (text.empty() ? "" : ", ") + (graph ? graph->variables[variable].name : std::to_string(variable));
  return text;
}

void Tensor::dumpRegions(std::ostream& out) const {
  for (const auto& interval : getVarRegions()) out << interval << '\n';
}

std::ostream& Tensor::output(std::ostream& out) const {
  if (!valid()) return out << "empty tensor";
  return out << "tensor of type " << elementType() << " and shape " << shapeToString();
}

bool Tensor::operator==(const Tensor& other) const {
  if (!valid() || !other.valid()) return valid() == other.valid();
  return impl().graph.lock() == other.impl().graph.lock() && elementType() == other.elementType() &&
         shape() == other.shape() && getVarRegions() == other.getVarRegions();
}

Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension) {
  if (tensors.empty()) throw poplar_error("concat: no tensor was passed; expected at least one.");
  std::vector<View> views;
  auto expected = tensors[0].shape();
  checkDimension("concat", tensors[0], dimension);
  for (const Tensor& tensor : tensors) {
    auto shape = tensor.shape();
    if (shape.size() == expected.size()) expected[dimension] = shape[dimension];
    if (shape != expected || tensor.elementType() != tensors[0].elementType())
      fail("concat", tensors[0], "another one is " + tensor.elementType().toString().str() + " of shape " +
                                     tensor.shapeToString() + "; expected the same type and sizes outside dimension " +
                                     std::to_string(dimension) + ".");
    views.push_back(tensor.impl().view);
  }
  const auto graph = tensors[0].impl().graph.lock();
  for (const Tensor& tensor : tensors)
    if (tensor.impl().graph.lock() != graph)
      fail("concat", tensors[0], "another one is of another graph. Pass tensors of one graph.");
  return makeTensor(tensors[0].elementType(), View::concat(views, dimension), graph);
}

Tensor append(const Tensor& first, const Tensor& second, unsigned dimension) {
  return concat(first, second.expand({dimension}), dimension);
}

}  // namespace poplar
