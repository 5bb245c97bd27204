// Reads tensor elements in a kernel's memory as C++ types, and converts half to float.
#ifndef poputil_detail_elements_hpp
#define poputil_detail_elements_hpp

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>
#include <poputil/exceptions.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace poputil::detail {

// The bits of a half, so that no function needs a compiler's half type.
struct Half {
  std::uint16_t bits;
};

inline float bitsToFloat(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline std::uint32_t floatToBits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float halfToFloat(Half half) {
  const std::uint32_t sign = (half.bits & 0x8000u) << 16, magnitude = (half.bits & 0x7fffu) << 13;
  // The exponent's bias grows by 112. Infinity and NaN keep an exponent of ones.
  const std::uint32_t scaled = floatToBits(bitsToFloat(magnitude) * 0x1p112f);
  return bitsToFloat(sign | (magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : scaled));
}

// The nearest half, ties to even, as a float.
inline float roundToHalf(float value) {
  const std::uint32_t bits = floatToBits(value), sign = bits & 0x80000000u, magnitude = bits & 0x7fffffffu;
  const std::uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1)) & ~0x1fffu;
  // Below 2^-14 the spacing is 2^-24, which is that of floats around 0.5.
  const std::uint32_t subnormal = floatToBits((bitsToFloat(magnitude) + 0.5f) - 0.5f);
  const std::uint32_t finite = std::min(magnitude < 0x38800000u ? subnormal : normal, 0x47800000u);
  const std::uint32_t special = magnitude > 0x7f800000u ? 0x7fc00000u : 0x7f800000u;
  // The first product of 2^16, which stands for all that overflows, raises the float unit's flag of overflows.
  return bitsToFloat(sign | (magnitude >= 0x7f800000u ? special : finite)) * 0x1p112f * 0x1p-112f;
}

inline Half floatToHalf(float value) {
  const std::uint32_t bits = floatToBits(roundToHalf(value)), magnitude = bits & 0x7fffffffu;
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t shrunk = floatToBits(bitsToFloat(magnitude) * 0x1p-112f) >> 13;
  const std::uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return {static_cast<std::uint16_t>(sign | (magnitude >= 0x7f800000u ? special : shrunk))};
}

template <class T>
struct TypeTag {
  using type = T;
};

// Calls `visitor` with the tag of the C++ type of elements; Half stands for half.
template <class Visitor>
decltype(auto) visitType(const poplar::Type &type, Visitor &&visitor) {
  using poplar::detail::TypeCode;
  switch (type.code()) {
    case TypeCode::BOOL: return visitor(TypeTag<bool>());
    case TypeCode::CHAR:
    case TypeCode::SIGNED_CHAR: return visitor(TypeTag<std::int8_t>());
    case TypeCode::UNSIGNED_CHAR: return visitor(TypeTag<std::uint8_t>());
    case TypeCode::SHORT: return visitor(TypeTag<std::int16_t>());
    case TypeCode::UNSIGNED_SHORT: return visitor(TypeTag<std::uint16_t>());
    case TypeCode::INT: return visitor(TypeTag<std::int32_t>());
    case TypeCode::UNSIGNED_INT: return visitor(TypeTag<std::uint32_t>());
    case TypeCode::LONG:
    case TypeCode::LONGLONG: return visitor(TypeTag<std::int64_t>());
    case TypeCode::UNSIGNED_LONG:
    case TypeCode::UNSIGNED_LONGLONG: return visitor(TypeTag<std::uint64_t>());
    case TypeCode::FLOAT: return visitor(TypeTag<float>());
    case TypeCode::HALF: return visitor(TypeTag<Half>());
    default:
      throw poplibs_error("The libraries have no elements of type " + type.toString().cloneAsString() +
                          ": expected float, half, bool or an integer type. Cast the tensor.");
  }
}

// Calls `visitor` with the tag of the unsigned integer of the same size, for functions that only move elements.
template <class Visitor>
decltype(auto) visitSize(const poplar::Type &type, Visitor &&visitor) {
  switch (poplar::detail::typeSize(type)) {
    case 1: return visitor(TypeTag<std::uint8_t>());
    case 2: return visitor(TypeTag<std::uint16_t>());
    case 4: return visitor(TypeTag<std::uint32_t>());
    default: return visitor(TypeTag<std::uint64_t>());
  }
}

// The type in which arithmetic on elements of type T is done.
template <class T>
using Arithmetic = std::conditional_t<std::is_same_v<T, Half>, float, T>;

template <class T>
Arithmetic<T> load(const T &element) {
  if constexpr (std::is_same_v<T, Half>) return halfToFloat(element);
  else return element;
}

// Converts as C++ does; out of an integer's range the nearest value is taken, and NaN is 0.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    const auto wide = static_cast<double>(value);
    if (!(wide > static_cast<double>(std::numeric_limits<To>::min())))
      return std::isnan(value) ? To(0) : std::numeric_limits<To>::min();
    if (wide >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(wide);
  } else {
    return static_cast<To>(value);
  }
}

template <class T, class From>
void store(T &element, From value) {
  if constexpr (std::is_same_v<T, Half>) element = floatToHalf(convert<float>(value));
  else element = convert<T>(value);
}

// Elements of a floating-point tensor as floats.
inline std::vector<float> readFloats(const poplar::Type &type, const void *data, std::size_t count) {
  std::vector<float> values(count);
  if (type == poplar::FLOAT) {
    std::memcpy(values.data(), data, count * sizeof(float));
  } else {
    const auto *halves = static_cast<const Half *>(data);
    for (std::size_t i = 0; i != count; ++i) values[i] = halfToFloat(halves[i]);
  }
  return values;
}

inline void writeFloats(const poplar::Type &type, const float *values, void *data, std::size_t count) {
  if (type == poplar::FLOAT) {
    std::memcpy(data, values, count * sizeof(float));
  } else {
    auto *halves = static_cast<Half *>(data);
    for (std::size_t i = 0; i != count; ++i) halves[i] = floatToHalf(values[i]);
  }
}

inline bool isFloating(const poplar::Type &type) { return type == poplar::FLOAT || type == poplar::HALF; }

inline std::string typeName(const poplar::Type &type) { return type.toString().cloneAsString(); }

inline std::string describeShape(const std::vector<std::size_t> &shape) {
  std::string text;
  for (const auto size : shape) text += (text.empty() ? "" : ",") + std::to_string(size);
  return "{" + text + "}";
}

inline std::size_t product(const std::vector<std::size_t> &shape) {
  std::size_t result = 1;
  for (const auto size : shape) result *= size;
  return result;
}

// Throws poplibs_error in the project's form: what failed, what was received and expected, and what to do.
[[noreturn]] inline void fail(const std::string &function, const std::string &problem, const std::string &advice) {
  throw poplibs_error(function + " failed: " + problem + ". " + advice + ".");
}

}  // namespace poputil::detail

#endif
