// Gives codelets access to the elements of a vertex's vector, with bounds checks in checked builds.
#ifndef POPLAR_DETAIL_ELEMENTS_HPP
#define POPLAR_DETAIL_ELEMENTS_HPP

#include <poplar/FieldTypes.hpp>

#include <cstddef>

#ifdef POPLAR_CHECKED
#include <poplar/detail/checks.hpp>
#endif

namespace poplar::detail {

constexpr bool hasSize(VectorLayout layout) {
  return layout == VectorLayout::SPAN || layout == VectorLayout::SHORT_SPAN;
}

// Constness is that of the elements: an `Input` has constant ones.
template <typename T, bool Sized>
class Elements {
 public:
  using value_type = T;

  T& operator[](std::size_t index) const {
#ifdef POPLAR_CHECKED
    if (index >= size_) throw OutOfBounds(field_, row_, index, size_);
#endif
    return first_[index];
  }

  std::size_t size() const {
    static_assert(Sized, "size() needs VectorLayout::SPAN or SHORT_SPAN: other layouts do not keep a size on an IPU");
    return size_;
  }
  bool empty() const { return size() == 0; }
  T* begin() const {
    static_assert(Sized, "begin() needs VectorLayout::SPAN or SHORT_SPAN: other layouts do not keep a size on an IPU");
    return first_;
  }
  T* end() const {
    static_assert(Sized, "end() needs VectorLayout::SPAN or SHORT_SPAN: other layouts do not keep a size on an IPU");
    return first_ + size_;
  }
  T* cbegin() const { return begin(); }
  T* cend() const { return end(); }
  T* data() const { return first_; }
  T& front() const { return (*this)[0]; }
  T& back() const { return (*this)[size() - 1]; }

  // Used by registrations only; `row` is negative for a vector that is itself the vertex's member.
  void bindElements(T* first, std::size_t size, [[maybe_unused]] const void* field,
                    [[maybe_unused]] std::ptrdiff_t row) {
    first_ = first;
    size_ = size;
#ifdef POPLAR_CHECKED
    field_ = field;
    row_ = row;
#endif
  }
  T* boundElements() const { return first_; }

 private:
  T* first_;
  std::size_t size_;
#ifdef POPLAR_CHECKED
  const void* field_;
  std::ptrdiff_t row_;
#endif
};

}  // namespace poplar::detail

#endif
