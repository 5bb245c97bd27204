// Non-owning references to contiguous arrays, the arguments of many Poplar functions.
#ifndef poplar_ArrayRef_hpp
#define poplar_ArrayRef_hpp

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace poplar {

template <class T>
class ArrayRef {
  // An array of pointers may also be passed as one of pointers to const.
  template <class U>
  using IfCompatible = std::enable_if_t<std::is_same_v<U, T> ||
                                            (std::is_pointer_v<T> && std::is_convertible_v<U const*, T const*>),
                                        bool>;

 public:
  using value_type = T;
  using size_type = std::size_t;
  using const_iterator = const T*;
  using iterator = const_iterator;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* data, std::size_t size) : data_(data), size_(size) {}
  template <class U, class Allocator, IfCompatible<U> = true>
  ArrayRef(const std::vector<U, Allocator>& values) : data_(values.data()), size_(values.size()) {}
  template <class U, IfCompatible<U> = true>
  constexpr ArrayRef(const ArrayRef<U>& values) : data_(values.data()), size_(values.size()) {}
  template <class U, std::size_t N, IfCompatible<U> = true>
  constexpr ArrayRef(const std::array<U, N>& values) : data_(values.data()), size_(N) {}
  template <class U, std::size_t N, IfCompatible<U> = true>
  constexpr ArrayRef(const U (&values)[N]) : data_(values), size_(N) {}
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // a braced argument lives as long as the call
#endif
  constexpr ArrayRef(std::initializer_list<T> values) : data_(values.begin()), size_(values.size()) {}
#pragma GCC diagnostic pop

  constexpr bool empty() const { return size_ == 0; }
  constexpr std::size_t size() const { return size_; }
  constexpr const T* data() const { return data_; }
  constexpr const_iterator begin() const { return data_; }
  constexpr const_iterator end() const { return data_ + size_; }
  constexpr const_iterator cbegin() const { return begin(); }
  constexpr const_iterator cend() const { return end(); }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  const T& at(std::size_t i) const {
    if (i >= size_) throw std::out_of_range("ArrayRef::at: index " + std::to_string(i) + " of " + std::to_string(size_));
    return data_[i];
  }
  std::vector<std::remove_const_t<T>> cloneAsVector() const { return {begin(), end()}; }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

// The element type of ArrayRef(values): the constructors above accept vectors of several types.
template <class T, class Allocator>
ArrayRef(const std::vector<T, Allocator>&) -> ArrayRef<T>;
template <class T, std::size_t N>
ArrayRef(const std::array<T, N>&) -> ArrayRef<T>;
template <class T, std::size_t N>
ArrayRef(const T (&)[N]) -> ArrayRef<T>;

template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}
template <class T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) {
  return !(a == b);
}

}  // namespace poplar

#endif
