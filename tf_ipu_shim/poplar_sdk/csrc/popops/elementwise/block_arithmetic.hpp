// The scalar functions of element-wise operations, and their loops.
#ifndef tf_ipu_shim_popops_block_arithmetic_hpp
#define tf_ipu_shim_popops_block_arithmetic_hpp

#include <cmath>
#include <cstdint>
#include <limits>
#include <poputil/detail/elements.hpp>
#include <type_traits>

#include "block_functions.hpp"

namespace popops::detail {

template <class T>
constexpr bool IS_FLOAT = std::is_floating_point_v<T>;
template <class T>
constexpr bool IS_INTEGER = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// Whether an operation exists for a class of types.
template <class T>
constexpr bool ALWAYS = true;
template <class T>
constexpr bool IS_NUMBER = !std::is_same_v<T, bool>;
template <class T>
constexpr bool IS_DISCRETE = std::is_integral_v<T>;

// A struct whose function apply() computes an operation on one element.
#define BLOCK_OPERATION(Name, ARGUMENTS, EXPRESSION) \
  struct Name {                                      \
    template <class T>                               \
    static auto apply ARGUMENTS {                    \
      return EXPRESSION;                             \
    }                                                \
  };

template <class Operation, class T>
void unaryLoop(const void *const *operands, void *result, std::size_t count) {
  const auto *a = static_cast<const T *>(operands[0]);
  using Result = decltype(Operation::apply(T()));
  auto *out = static_cast<Result *>(result);
  for (std::size_t i = 0; i != count; ++i) out[i] = Operation::apply(a[i]);
}

template <class Operation, class T>
void binaryLoop(const void *const *operands, void *result, std::size_t count) {
  const auto *a = static_cast<const T *>(operands[0]);
  const auto *b = static_cast<const T *>(operands[1]);
  using Result = decltype(Operation::apply(T(), T()));
  auto *out = static_cast<Result *>(result);
  for (std::size_t i = 0; i != count; ++i) out[i] = Operation::apply(a[i], b[i]);
}

// The loop of an operation if it EXISTS for elements of type T, else null.
template <class Operation, class T, bool EXISTS>
BlockFunction unaryLoopOf() {
  if constexpr (EXISTS) return &unaryLoop<Operation, T>;
  else return nullptr;
}

template <class Operation, class T, bool EXISTS>
BlockFunction binaryLoopOf() {
  if constexpr (EXISTS) return &binaryLoop<Operation, T>;
  else return nullptr;
}

// Unsigned arithmetic wraps around, and so does ours on signed integers.
template <class T>
using Wrapping = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, std::make_unsigned<T>,
                                    std::enable_if<true, T>>;

template <class T>
auto wrap(T value) {
  return static_cast<typename Wrapping<T>::type>(value);
}

// Bits shifted out, or in, are lost, also where C++ leaves a shift by the whole width undefined.
template <class T>
T shiftBitsLeft(T value, T by) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto amount = static_cast<Unsigned>(by);
  return amount >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<Unsigned>(value) << amount);
}

template <class T>
T shiftBitsRight(T value, T by) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto amount = static_cast<Unsigned>(by);
  return amount >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<Unsigned>(value) >> amount);
}

template <class T>
T shiftSignRight(T value, T by) {
  using Signed = std::make_signed_t<T>;
  const auto amount = static_cast<std::make_unsigned_t<T>>(by);
  return static_cast<T>(static_cast<Signed>(value) >> std::min<std::size_t>(amount, 8 * sizeof(T) - 1));
}

// Integer division by zero is undefined on an IPU; here its result has all bits set, as in XLA.
template <class T>
T divide(T a, T b) {
  if constexpr (IS_INTEGER<T>) {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(wrap(T(0)) - wrap(a));
  }
  return static_cast<T>(a / b);
}

template <class T>
T remainder(T a, T b) {
  if constexpr (IS_FLOAT<T>) {
    return std::fmod(a, b);
  } else {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
}

template <class T>
T power(T base, T exponent) {
  if constexpr (IS_FLOAT<T>) {
    return std::pow(base, exponent);
  } else {
    if (std::is_signed_v<T> && exponent < T(0)) return base == T(1) ? T(1) : base == T(-1) ? (exponent % 2 ? base : T(1)) : T(0);
    auto result = wrap(T(1));
    for (auto factor = wrap(base); exponent != 0; exponent >>= 1, factor *= factor)
      if (exponent & 1) result *= factor;
    return static_cast<T>(result);
  }
}

template <class T>
T countZeros(T value) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto bits = static_cast<std::uint64_t>(static_cast<Unsigned>(value));
  return static_cast<T>(bits == 0 ? 8 * sizeof(T) : __builtin_clzll(bits) - (64 - 8 * sizeof(T)));
}

template <class T>
T countOnes(T value) {
  return static_cast<T>(__builtin_popcountll(static_cast<std::make_unsigned_t<T>>(value)));
}

template <class T>
T signOf(T value) {
  if constexpr (IS_FLOAT<T>) {
    if (std::isnan(value)) return value;
  }
  return static_cast<T>((value > T(0)) - (std::is_signed_v<T> && value < T(0)));
}

template <class T>
T squareRoot(T value) {
  if constexpr (IS_FLOAT<T>) return std::sqrt(value);
  else return static_cast<T>(std::sqrt(static_cast<long double>(value)));
}

template <class T>
T magnitude(T value) {
  if constexpr (IS_FLOAT<T>) return std::fabs(value);
  else if constexpr (std::is_signed_v<T>) return static_cast<T>(value < 0 ? wrap(T(0)) - wrap(value) : wrap(value));
  else return value;
}

template <class T>
T larger(T a, T b) {
  if constexpr (IS_FLOAT<T>) return a >= b || std::isnan(b) ? a : b;  // a number, if only one operand is NaN
  else return a >= b ? a : b;
}

template <class T>
T smaller(T a, T b) {
  if constexpr (IS_FLOAT<T>) return a <= b || std::isnan(b) ? a : b;
  else return a <= b ? a : b;
}

}  // namespace popops::detail

#endif
