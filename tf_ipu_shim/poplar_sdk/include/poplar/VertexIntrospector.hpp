// Shows the fields of a vertex to a function that estimates its cycles.
#ifndef poplar_VertexIntrospector_hpp
#define poplar_VertexIntrospector_hpp

#include <poplar/PerfEstimateFunc.hpp>
#include <poplar/Target.hpp>
#include <poplar/TypeConversion.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace poplar {

namespace detail {
struct GraphState;
struct VertexState;
std::optional<VertexPerfEstimate> registeredEstimate(const GraphState& graph, const VertexState& vertex);
}  // namespace detail

// A field of a vertex.
class FieldData {
 public:
  // Elements of a scalar or vector; vectors of a vector of vectors.
  std::size_t size() const { return sizes_.empty() ? count_ : sizes_.size(); }
  // Elements of one vector of a vector of vectors.
  std::size_t getSizeAtIndex(std::size_t index) const;
  // What `setInitialValue` has set.
  template <class T>
  std::vector<T> getInitialValues(const Target&) const {
    const std::size_t count = valueCount();
    std::vector<char> values(count * sizeof(T));  // std::vector<bool> has no array
    detail::convertToHost(values_->data(), type_, values.data(), TypeTraits::make<T>(), count);
    const T* const first = reinterpret_cast<const T*>(values.data());
    return std::vector<T>(first, first + count);
  }
  template <class T>
  T getInitialValue(const Target& target) const {
    return getInitialValues<T>(target)[0];
  }

 private:
  friend class VertexIntrospector;
  std::size_t valueCount() const;  // throws without a value
  std::string name_;               // for messages
  Type type_;
  std::size_t count_ = 0;
  std::vector<std::size_t> sizes_;
  const std::vector<char>* values_ = nullptr;
};

// A vertex of a graph whose cycles are estimated.
class VertexIntrospector {
 public:
  FieldData getFieldInfo(const std::string& name) const;

 private:
  friend std::optional<VertexPerfEstimate> detail::registeredEstimate(const detail::GraphState& graph,
                                                                      const detail::VertexState& vertex);
  explicit VertexIntrospector(const detail::VertexState& vertex) : vertex_(vertex) {}
  const detail::VertexState& vertex_;
};

}  // namespace poplar

#endif
