// The class of short vectors such as float2 and half4, with the members x, y, z and w. Its lanes are a vector type of
// the compiler, which has no members x and y in g++.
#ifndef POPLAR_DETAIL_SHORT_VECTOR_HPP
#define POPLAR_DETAIL_SHORT_VECTOR_HPP

#include <poplar/HalfFloat.hpp>

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace poplar::detail {

// A vector is aligned to 8 bytes at most, as fields of vertices are.
template <typename T, unsigned N>
using Lanes __attribute__((vector_size(N * sizeof(T)), aligned(N * sizeof(T) < 8 ? N * sizeof(T) : 8))) = T;

template <typename T, unsigned N>
struct ShortVectorMembers;
template <typename T>
struct ShortVectorMembers<T, 2> {
  union {
    Lanes<T, 2> lanes;
    struct {
      T x, y;
    };
  };
  ShortVectorMembers() = default;
  constexpr explicit ShortVectorMembers(const T (&values)[2]) : lanes{values[0], values[1]} {}
};
template <typename T>
struct ShortVectorMembers<T, 4> {
  union {
    Lanes<T, 4> lanes;
    struct {
      T x, y, z, w;
    };
  };
  ShortVectorMembers() = default;
  constexpr explicit ShortVectorMembers(const T (&values)[4]) : lanes{values[0], values[1], values[2], values[3]} {}
};

template <typename T, unsigned N>
class ShortVector : public ShortVectorMembers<T, N> {
  using Members = ShortVectorMembers<T, N>;
  struct Element {
    template <typename U, std::enable_if_t<std::is_convertible_v<U, T>, int> = 0>
    constexpr Element(const U& value) : value(static_cast<T>(value)) {}
    T value;
  };
  struct Values {
    T values[N] = {};
  };
  static constexpr Values listed(std::initializer_list<Element> elements) {
    Values result;
    std::size_t index = 0;
    for (const Element& element : elements)
      if (index < N) result.values[index++] = element.value;
    return result;
  }
  static constexpr Values repeated(T value) {
    Values result;
    for (T& element : result.values) element = value;
    return result;
  }

 public:
  ShortVector() = default;
  // Elements that are not listed are 0.
  constexpr ShortVector(std::initializer_list<Element> elements) : Members(listed(elements).values) {}
  template <typename U, std::enable_if_t<std::is_convertible_v<U, T>, int> = 0>
  constexpr ShortVector(const U& value) : Members(repeated(static_cast<T>(value)).values) {}
  // The bits of a vector of other elements.
  template <typename U, unsigned M, std::enable_if_t<M * sizeof(U) == N * sizeof(T), int> = 0>
  explicit ShortVector(const ShortVector<U, M>& other) {
    std::memcpy(&this->lanes, &other.lanes, sizeof(this->lanes));
  }
  template <typename Compiler>
  static ShortVector of(const Compiler& lanes) {
    ShortVector result;
    result.lanes = lanes;
    return result;
  }

  T& operator[](std::size_t index) { return reinterpret_cast<T*>(this)[index]; }
  const T& operator[](std::size_t index) const { return reinterpret_cast<const T*>(this)[index]; }
  // For `auto [x, y] = vector`.
  template <std::size_t Index>
  T& get() {
    return (*this)[Index];
  }
  template <std::size_t Index>
  const T& get() const {
    return (*this)[Index];
  }

  ShortVector operator+() const { return *this; }
  ShortVector operator-() const { return of(-this->lanes); }
  ShortVector operator~() const { return of(~this->lanes); }
};

// A comparison's elements are integers: -1 for true.
#define POPLAR_SHORT_VECTOR_OPERATOR(op)                                                                 \
  template <typename T, unsigned N>                                                                      \
  auto operator op(const ShortVector<T, N>& first, const ShortVector<T, N>& second) {                    \
    const auto lanes = first.lanes op second.lanes;                                                      \
    return ShortVector<std::remove_cv_t<std::remove_reference_t<decltype(lanes[0])>>, N>::of(lanes);     \
  }                                                                                                      \
  template <typename T, unsigned N, typename U, std::enable_if_t<std::is_convertible_v<U, T>, int> = 0>  \
  auto operator op(const ShortVector<T, N>& first, const U& second) {                                    \
    return first op ShortVector<T, N>(second);                                                           \
  }                                                                                                      \
  template <typename T, unsigned N, typename U, std::enable_if_t<std::is_convertible_v<U, T>, int> = 0>  \
  auto operator op(const U& first, const ShortVector<T, N>& second) {                                    \
    return ShortVector<T, N>(first) op second;                                                           \
  }
#define POPLAR_SHORT_VECTOR_ARITHMETIC(op)                                      \
  POPLAR_SHORT_VECTOR_OPERATOR(op)                                              \
  template <typename T, unsigned N, typename U>                                 \
  ShortVector<T, N>& operator op##=(ShortVector<T, N>& first, const U& second) { \
    return first = first op second;                                             \
  }
POPLAR_SHORT_VECTOR_ARITHMETIC(+)
POPLAR_SHORT_VECTOR_ARITHMETIC(-)
POPLAR_SHORT_VECTOR_ARITHMETIC(*)
POPLAR_SHORT_VECTOR_ARITHMETIC(/)
POPLAR_SHORT_VECTOR_ARITHMETIC(%)
POPLAR_SHORT_VECTOR_ARITHMETIC(&)
POPLAR_SHORT_VECTOR_ARITHMETIC(|)
POPLAR_SHORT_VECTOR_ARITHMETIC(^)
POPLAR_SHORT_VECTOR_ARITHMETIC(<<)
POPLAR_SHORT_VECTOR_ARITHMETIC(>>)
POPLAR_SHORT_VECTOR_OPERATOR(==)
POPLAR_SHORT_VECTOR_OPERATOR(!=)
POPLAR_SHORT_VECTOR_OPERATOR(<)
POPLAR_SHORT_VECTOR_OPERATOR(<=)
POPLAR_SHORT_VECTOR_OPERATOR(>)
POPLAR_SHORT_VECTOR_OPERATOR(>=)
#undef POPLAR_SHORT_VECTOR_ARITHMETIC
#undef POPLAR_SHORT_VECTOR_OPERATOR

// Elements of another type; also of the compiler's own vectors.
template <typename To, typename From>
To converted(const From& value) {
  return __builtin_convertvector(value, To);
}
template <typename To, typename T, unsigned N>
To converted(const ShortVector<T, N>& value) {
  return To::of(__builtin_convertvector(value.lanes, decltype(To::lanes)));
}

}  // namespace poplar::detail

template <typename T, unsigned N>
struct std::tuple_size<poplar::detail::ShortVector<T, N>> : std::integral_constant<std::size_t, N> {};
template <std::size_t Index, typename T, unsigned N>
struct std::tuple_element<Index, poplar::detail::ShortVector<T, N>> {
  using type = T;
};


#define __builtin_convertvector(value, ...) poplar::detail::converted<__VA_ARGS__>(value)

#endif
