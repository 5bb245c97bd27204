// The algebra of views: which elements of variables a tensor refers to.
#ifndef poplar_csrc_view_hpp
#define poplar_csrc_view_hpp

#include <poplar/Interval.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poplar::detail {

// An element of a variable: the variable's number in the high bits, the index in the others.
using Address = std::int64_t;
inline constexpr int index_bits = 40;
inline constexpr Address addressOf(std::size_t variable, std::size_t index) {
  return (static_cast<Address>(variable) << index_bits) | static_cast<Address>(index);
}
inline constexpr std::size_t variableOf(Address address) { return static_cast<std::size_t>(address >> index_bits); }
inline constexpr std::size_t indexOf(Address address) {
  return static_cast<std::size_t>(address & ((Address{1} << index_bits) - 1));
}

// Elements of one variable at equal distances.
struct Span {
  Address address;
  std::int64_t length;
  std::int64_t step;
  Address last() const { return address + (length - 1) * step; }
  Address low() const { return step < 0 ? last() : address; }
  Address high() const { return step < 0 ? address : last(); }
};

// Joins spans that follow each other as they come.
class SpanJoiner {
 public:
  void add(Span span);
  std::vector<Span> take() { return std::move(spans_); }

 private:
  std::vector<Span> spans_;
};

// A span and where it begins in a sequence of elements.
struct Run {
  std::int64_t start;
  Span span;
};

// A strided array over all elements, or over a sequence of runs.
class View {
 public:
  using Shape = std::vector<std::size_t>;

  View() = default;
  View(Address address, Shape shape);

  const Shape& shape() const { return shape_; }
  std::size_t count() const;
  View slice(const Shape& begin, const Shape& end) const;
  View permute(const std::vector<unsigned>& order) const;
  View reverse(unsigned dimension) const;
  View subSample(std::size_t stride, unsigned dimension) const;
  View reshape(Shape shape) const;
  // Repeats a dimension of size 1 without moving any element.
  View repeatOne(std::size_t count, unsigned dimension) const;
  // The same elements of another variable.
  View inVariable(std::size_t variable) const;
  static View concat(const std::vector<View>& views, unsigned dimension);
  static View fromSpans(std::vector<Span> spans, Shape shape);

  // The elements in row-major order.
  std::vector<Span> spans() const;
  // The only span, if there is exactly one, and its step is 1.
  std::optional<Span> contiguous() const;

 private:
  template <class Archive>
  friend void transferFields(Archive& archive, View& view);  // writes it to a file, or reads it
  template <class Visitor>
  void visitRow(std::int64_t at, std::int64_t count, std::int64_t stride, Visitor&& visit) const;
  void narrow();
  bool reshapeInPlace(const Shape& shape);

  Shape shape_;
  std::vector<std::int64_t> strides_;
  std::int64_t offset_ = 0;
  std::shared_ptr<const std::vector<Run>> runs_;  // null: positions are addresses
};

// "{3,4}".
std::string shapeText(const View::Shape& shape);

// The number of elements; throws if no tensor can have so many.
std::size_t product(const View::Shape& shape);

// Two of the spans that share an element, by their positions.
std::optional<std::pair<std::size_t, std::size_t>> findOverlap(const std::vector<Span>& spans);

}  // namespace poplar::detail

#endif
