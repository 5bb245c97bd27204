// Descriptions of the C++ types of host data.
#ifndef poplar_TypeTraits_hpp
#define poplar_TypeTraits_hpp

#include <poplar/Type.hpp>

#include <cstddef>
#include <type_traits>

namespace poplar {

class TypeTraits {
 public:
  std::size_t size = 0;
  std::size_t align = 0;
  bool isIntegral = false;
  bool isSigned = false;
  bool isFloat = false;
  bool isBool = false;

  // A class of a library for half-precision numbers.
  template <class T>
  static constexpr bool isHalfClass() {
    if constexpr (!std::is_class_v<T>) return false;
    else return sizeof(T) == 2 && std::is_trivially_copyable_v<T> && std::is_constructible_v<float, T>;
  }
  template <class T>
  static constexpr bool isSimpleType() {
    return std::is_arithmetic_v<T> || std::is_same_v<std::remove_cv_t<T>, _Float16> || isHalfClass<T>();
  }
  template <class T>
  static TypeTraits make() {
    static_assert(isSimpleType<T>(), "a host element is an arithmetic type");
    TypeTraits traits;
    traits.size = sizeof(T);
    traits.align = alignof(T);
    traits.isIntegral = std::is_integral_v<T>;
    traits.isSigned = std::is_signed_v<T>;
    traits.isFloat = !std::is_integral_v<T>;
    traits.isBool = std::is_same_v<T, bool>;
    return traits;
  }
};

inline bool operator==(const TypeTraits& a, const TypeTraits& b) {
  return a.size == b.size && a.isIntegral == b.isIntegral && a.isSigned == b.isSigned && a.isFloat == b.isFloat &&
         a.isBool == b.isBool;
}

template <class T>
using IfSimple = std::enable_if_t<TypeTraits::isSimpleType<T>(), int>;

namespace detail {
// Converts host elements to the device's type: floats round to nearest even, integers are cast as in C++.
void convertElements(const void* from, const TypeTraits& traits, void* to, Type type, std::size_t count);
}  // namespace detail

}  // namespace poplar

#endif
