// Element types of tensors.
#ifndef poplar_Type_hpp
#define poplar_Type_hpp

#include <poplar/StringRef.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>

namespace poplar {

namespace detail {
enum class TypeCode : unsigned char {
  BOOL, CHAR, UNSIGNED_CHAR, SIGNED_CHAR, UNSIGNED_SHORT, SHORT, UNSIGNED_INT, INT, UNSIGNED_LONG, LONG,
  UNSIGNED_LONGLONG, LONGLONG, HALF, FLOAT, DOUBLE, QUARTER, NONE
};
}

class Type {
 public:
  constexpr Type() = default;
  constexpr explicit Type(detail::TypeCode code) : code_(code) {}

  // The name in C++, for example "unsigned int".
  StringRef toString() const;
  constexpr detail::TypeCode code() const { return code_; }
  constexpr bool operator==(const Type& other) const { return code_ == other.code_; }
  constexpr bool operator!=(const Type& other) const { return code_ != other.code_; }
  constexpr bool operator<(const Type& other) const { return code_ < other.code_; }
  constexpr bool operator>(const Type& other) const { return code_ > other.code_; }
  constexpr bool operator<=(const Type& other) const { return code_ <= other.code_; }
  constexpr bool operator>=(const Type& other) const { return code_ >= other.code_; }
  bool requiresMetadata() const { return code_ == detail::TypeCode::QUARTER; }
  bool isFloatingPoint() const {
    return code_ == detail::TypeCode::HALF || code_ == detail::TypeCode::FLOAT || code_ == detail::TypeCode::DOUBLE ||
           code_ == detail::TypeCode::QUARTER;
  }

 private:
  detail::TypeCode code_ = detail::TypeCode::NONE;
};

// As in Graphcore's header they are no constants: codelets' hosts pass them as `Type&`.
inline Type BOOL{detail::TypeCode::BOOL};
inline Type CHAR{detail::TypeCode::CHAR};
inline Type UNSIGNED_CHAR{detail::TypeCode::UNSIGNED_CHAR};
inline Type SIGNED_CHAR{detail::TypeCode::SIGNED_CHAR};
inline Type UNSIGNED_SHORT{detail::TypeCode::UNSIGNED_SHORT};
inline Type SHORT{detail::TypeCode::SHORT};
inline Type UNSIGNED_INT{detail::TypeCode::UNSIGNED_INT};
inline Type INT{detail::TypeCode::INT};
inline Type UNSIGNED_LONG{detail::TypeCode::UNSIGNED_LONG};
inline Type LONG{detail::TypeCode::LONG};
inline Type UNSIGNED_LONGLONG{detail::TypeCode::UNSIGNED_LONGLONG};
inline Type LONGLONG{detail::TypeCode::LONGLONG};
inline Type HALF{detail::TypeCode::HALF};
inline Type FLOAT{detail::TypeCode::FLOAT};
inline Type DOUBLE{detail::TypeCode::DOUBLE};
inline Type QUARTER{detail::TypeCode::QUARTER};

std::ostream& operator<<(std::ostream& out, const Type& type);

// The device type of a C++ type: equivalent_device_type<float>().value is FLOAT.
template <class T>
struct equivalent_device_type;

#define POPLAR_DEVICE_TYPE(CPP, TYPE)      \
  template <>                              \
  struct equivalent_device_type<CPP> {     \
    Type value = TYPE;                     \
  };
POPLAR_DEVICE_TYPE(bool, BOOL)
POPLAR_DEVICE_TYPE(char, CHAR)
POPLAR_DEVICE_TYPE(unsigned char, UNSIGNED_CHAR)
POPLAR_DEVICE_TYPE(signed char, SIGNED_CHAR)
POPLAR_DEVICE_TYPE(unsigned short, UNSIGNED_SHORT)
POPLAR_DEVICE_TYPE(short, SHORT)
POPLAR_DEVICE_TYPE(unsigned int, UNSIGNED_INT)
POPLAR_DEVICE_TYPE(int, INT)
POPLAR_DEVICE_TYPE(unsigned long, UNSIGNED_LONG)
POPLAR_DEVICE_TYPE(long, LONG)
POPLAR_DEVICE_TYPE(unsigned long long, UNSIGNED_LONGLONG)
POPLAR_DEVICE_TYPE(long long, LONGLONG)
POPLAR_DEVICE_TYPE(float, FLOAT)
POPLAR_DEVICE_TYPE(double, DOUBLE)
POPLAR_DEVICE_TYPE(_Float16, HALF)
#undef POPLAR_DEVICE_TYPE

namespace detail {
// Bytes of an element on the device. `long` has the size that codelets compiled for the CPU have.
std::size_t typeSize(Type type);
}  // namespace detail

}  // namespace poplar

template <>
struct std::hash<poplar::Type> {
  std::size_t operator()(const poplar::Type& type) const { return static_cast<std::size_t>(type.code()); }
};

#endif
