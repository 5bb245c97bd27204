// `half`, the compiler's 16-bit `_Float16`, and the standard functions that C++17 lacks for it.
#ifndef POPLAR_HALF_FLOAT_HPP
#define POPLAR_HALF_FLOAT_HPP

#ifndef __FLT16_MAX__
#error "poplar/HalfFloat.hpp: this compiler has no _Float16. Use g++ 12 or newer, or set CXX to clang++ 15 or newer."
#endif

#include <cmath>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <type_traits>

typedef _Float16 half;

namespace poplar {
using half = ::half;
}

#ifndef __STDCPP_FLOAT16_T__  // the standard library of C++23 has all of this
namespace std {

template <>
class numeric_limits<_Float16> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true, is_iec559 = true;
  static constexpr bool is_bounded = true, is_modulo = false, traps = false, tinyness_before = false;
  static constexpr bool has_denorm_loss = false;
  static constexpr float_denorm_style has_denorm = denorm_present;
  static constexpr float_round_style round_style = round_to_nearest;
  static constexpr int digits = 11, digits10 = 3, max_digits10 = 5, radix = 2;
  static constexpr int min_exponent = -13, min_exponent10 = -4, max_exponent = 16, max_exponent10 = 4;
  static constexpr _Float16 min() noexcept { return static_cast<_Float16>(6.103515625e-05f); }
  static constexpr _Float16 max() noexcept { return static_cast<_Float16>(65504.0f); }
  static constexpr _Float16 lowest() noexcept { return static_cast<_Float16>(-65504.0f); }
  static constexpr _Float16 epsilon() noexcept { return static_cast<_Float16>(9.765625e-04f); }
  static constexpr _Float16 round_error() noexcept { return static_cast<_Float16>(0.5f); }
  static constexpr _Float16 denorm_min() noexcept { return static_cast<_Float16>(5.9604644775390625e-08f); }
  static constexpr _Float16 infinity() noexcept { return static_cast<_Float16>(__builtin_huge_valf()); }
  static constexpr _Float16 quiet_NaN() noexcept { return static_cast<_Float16>(__builtin_nanf("")); }
  static constexpr _Float16 signaling_NaN() noexcept { return static_cast<_Float16>(__builtin_nansf("")); }
};

// In strict modes of the compiler `_Float16` is no arithmetic type for the standard library.
template <>
struct is_floating_point<_Float16> : true_type {};
template <>
struct is_arithmetic<_Float16> : true_type {};
#if __cplusplus >= 201703L
template <>
inline constexpr bool is_floating_point_v<_Float16> = true;
template <>
inline constexpr bool is_arithmetic_v<_Float16> = true;
#endif

#define POPLAR_HALF_FUNCTION(name) \
  inline _Float16 name(_Float16 x) { return static_cast<_Float16>(std::name(static_cast<float>(x))); }
#define POPLAR_HALF_FUNCTION2(name)                                                                    \
  inline _Float16 name(_Float16 x, _Float16 y) {                                                       \
    return static_cast<_Float16>(std::name(static_cast<float>(x), static_cast<float>(y)));             \
  }                                                                                                    \
  inline float name(_Float16 x, float y) { return std::name(static_cast<float>(x), y); }               \
  inline float name(float x, _Float16 y) { return std::name(x, static_cast<float>(y)); }
POPLAR_HALF_FUNCTION(abs)
POPLAR_HALF_FUNCTION(fabs)
POPLAR_HALF_FUNCTION(sqrt)
POPLAR_HALF_FUNCTION(cbrt)
POPLAR_HALF_FUNCTION(exp)
POPLAR_HALF_FUNCTION(exp2)
POPLAR_HALF_FUNCTION(expm1)
POPLAR_HALF_FUNCTION(log)
POPLAR_HALF_FUNCTION(log2)
POPLAR_HALF_FUNCTION(log10)
POPLAR_HALF_FUNCTION(log1p)
POPLAR_HALF_FUNCTION(sin)
POPLAR_HALF_FUNCTION(cos)
POPLAR_HALF_FUNCTION(tan)
POPLAR_HALF_FUNCTION(asin)
POPLAR_HALF_FUNCTION(acos)
POPLAR_HALF_FUNCTION(atan)
POPLAR_HALF_FUNCTION(sinh)
POPLAR_HALF_FUNCTION(cosh)
POPLAR_HALF_FUNCTION(tanh)
POPLAR_HALF_FUNCTION(erf)
POPLAR_HALF_FUNCTION(floor)
POPLAR_HALF_FUNCTION(ceil)
POPLAR_HALF_FUNCTION(round)
POPLAR_HALF_FUNCTION(trunc)
POPLAR_HALF_FUNCTION(rint)
POPLAR_HALF_FUNCTION(nearbyint)
POPLAR_HALF_FUNCTION2(pow)
POPLAR_HALF_FUNCTION2(fmod)
POPLAR_HALF_FUNCTION2(fmax)
POPLAR_HALF_FUNCTION2(fmin)
POPLAR_HALF_FUNCTION2(atan2)
POPLAR_HALF_FUNCTION2(copysign)
#undef POPLAR_HALF_FUNCTION
#undef POPLAR_HALF_FUNCTION2
inline bool isnan(_Float16 x) { return std::isnan(static_cast<float>(x)); }
inline bool isinf(_Float16 x) { return std::isinf(static_cast<float>(x)); }
inline bool isfinite(_Float16 x) { return std::isfinite(static_cast<float>(x)); }
inline bool signbit(_Float16 x) { return std::signbit(static_cast<float>(x)); }
inline _Float16 fma(_Float16 x, _Float16 y, _Float16 z) {
  return static_cast<_Float16>(std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)));
}

// Found by the stream, in whichever namespace the caller is.
template <typename Traits>
basic_ostream<char, Traits>& operator<<(basic_ostream<char, Traits>& stream, _Float16 value) {
  return stream << static_cast<float>(value);
}

}  // namespace std
#endif

#endif
