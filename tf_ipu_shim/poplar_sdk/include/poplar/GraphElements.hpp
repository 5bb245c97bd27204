// References to vertices, their fields, compute sets and functions of a graph.
#ifndef poplar_GraphElements_hpp
#define poplar_GraphElements_hpp

#include <poplar/StringRef.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace poplar {

class VertexRef;

// A field of a vertex, or an element of a field that is a vector of vectors.
class FieldRef {
 public:
  FieldRef() = default;
  FieldRef(unsigned vertex, StringRef name) : vertex_(vertex), name_(name.str()) {}
  FieldRef operator[](std::size_t index) const {
    FieldRef element = *this;
    element.index_ = index;
    element.indexed_ = true;
    return element;
  }
  unsigned vertex() const { return vertex_; }
  const std::string& name() const { return name_; }
  bool isIndexed() const { return indexed_; }
  std::size_t getIndex() const { return index_; }

 private:
  unsigned vertex_ = 0;
  std::string name_;
  std::size_t index_ = 0;
  bool indexed_ = false;
};

namespace detail {

// The number of an element of a graph.
template <class Kind>
class Reference {
 public:
  Reference() = default;
  explicit Reference(unsigned id) : id_(id), valid_(true) {}
  unsigned getId() const { return id_; }
  bool isNull() const { return !valid_; }
  bool operator==(const Kind& other) const { return id_ == other.id_ && valid_ == other.valid_; }
  bool operator!=(const Kind& other) const { return !(*this == other); }
  bool operator<(const Kind& other) const { return id_ < other.id_; }

 private:
  unsigned id_ = 0;
  bool valid_ = false;
};

}  // namespace detail

class VertexRef : public detail::Reference<VertexRef> {
 public:
  using Reference::Reference;
  FieldRef operator[](StringRef field) const { return FieldRef(getId(), field); }
};

class ComputeSet : public detail::Reference<ComputeSet> {
 public:
  using Reference::Reference;
};

// A program that programs of the graph may call.
class Function : public detail::Reference<Function> {
 public:
  using Reference::Reference;
};

// A function of the host that programs of the graph may call.
class HostFunction : public detail::Reference<HostFunction> {
 public:
  using Reference::Reference;
};

}  // namespace poplar

#endif
