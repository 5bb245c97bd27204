// Element types: names, sizes, and conversions of the host's data.
#include <poplar/OptionFlags.hpp>
#include <poplar/TargetType.hpp>
#include <poplar/TypeConversion.hpp>
#include <poplar/exceptions.hpp>

#include <cstring>
#include <istream>
#include <iterator>
#include <type_traits>

namespace poplar {

StringRef Type::toString() const {
  using detail::TypeCode;
  switch (code_) {
    case TypeCode::BOOL: return "bool";
    case TypeCode::CHAR: return "char";
    case TypeCode::UNSIGNED_CHAR: return "unsigned char";
    case TypeCode::SIGNED_CHAR: return "signed char";
    case TypeCode::UNSIGNED_SHORT: return "unsigned short";
    case TypeCode::SHORT: return "short";
    case TypeCode::UNSIGNED_INT: return "unsigned int";
    case TypeCode::INT: return "int";
    case TypeCode::UNSIGNED_LONG: return "unsigned long";
    case TypeCode::LONG: return "long";
    case TypeCode::UNSIGNED_LONGLONG: return "unsigned long long";
    case TypeCode::LONGLONG: return "long long";
    case TypeCode::HALF: return "half";
    case TypeCode::FLOAT: return "float";
    case TypeCode::DOUBLE: return "double";
    case TypeCode::QUARTER: return "quarter";
    case TypeCode::NONE: break;
  }
  return "undefined";
}

std::ostream& operator<<(std::ostream& out, const Type& type) { return out << type.toString(); }

std::string toString(TargetType type) {
  switch (type) {
    case TargetType::IPU: return "IPU";
    case TargetType::IPU_MODEL: return "IPU_MODEL";
    case TargetType::CPU: return "CPU";
  }
  throw poplar_error("TargetType has no value " + std::to_string(static_cast<int>(type)) + ". Pass one of its names.");
}

std::ostream& operator<<(std::ostream& out, TargetType type) { return out << toString(type); }

namespace detail {

std::size_t typeSize(Type type) {
  switch (type.code()) {
    case TypeCode::BOOL: case TypeCode::CHAR: case TypeCode::UNSIGNED_CHAR: case TypeCode::SIGNED_CHAR:
    case TypeCode::QUARTER: return 1;
    case TypeCode::UNSIGNED_SHORT: case TypeCode::SHORT: case TypeCode::HALF: return 2;
    case TypeCode::UNSIGNED_INT: case TypeCode::INT: case TypeCode::FLOAT: return 4;
    case TypeCode::UNSIGNED_LONG: case TypeCode::LONG: return sizeof(long);
    case TypeCode::UNSIGNED_LONGLONG: case TypeCode::LONGLONG: case TypeCode::DOUBLE: return 8;
    case TypeCode::NONE: break;
  }
  throw type_error("The element type is undefined; expected one of the types of poplar/Type.hpp. Pass such a type.");
}

namespace {

template <class T>
struct Tag {
  using type = T;
};

// Calls with a tag of the C++ type that holds an element.
template <class F>
void withDeviceType(Type type, F&& call) {
  switch (type.code()) {
    case TypeCode::BOOL: return call(Tag<bool>());
    case TypeCode::CHAR: return call(Tag<char>());
    case TypeCode::UNSIGNED_CHAR: return call(Tag<unsigned char>());
    case TypeCode::SIGNED_CHAR: return call(Tag<signed char>());
    case TypeCode::UNSIGNED_SHORT: return call(Tag<unsigned short>());
    case TypeCode::SHORT: return call(Tag<short>());
    case TypeCode::UNSIGNED_INT: return call(Tag<unsigned int>());
    case TypeCode::INT: return call(Tag<int>());
    case TypeCode::UNSIGNED_LONG: return call(Tag<unsigned long>());
    case TypeCode::LONG: return call(Tag<long>());
    case TypeCode::UNSIGNED_LONGLONG: return call(Tag<unsigned long long>());
    case TypeCode::LONGLONG: return call(Tag<long long>());
    case TypeCode::HALF: return call(Tag<_Float16>());
    case TypeCode::FLOAT: return call(Tag<float>());
    case TypeCode::DOUBLE: return call(Tag<double>());
    default: throw type_error("Values of type " + type.toString().str() + " cannot be converted. Use HALF or FLOAT.");
  }
}

template <class F>
void withInteger(std::size_t size, bool is_signed, F&& call) {
  switch (size) {
    case 1: return is_signed ? call(Tag<std::int8_t>()) : call(Tag<std::uint8_t>());
    case 2: return is_signed ? call(Tag<std::int16_t>()) : call(Tag<std::uint16_t>());
    case 4: return is_signed ? call(Tag<std::int32_t>()) : call(Tag<std::uint32_t>());
    default: return is_signed ? call(Tag<std::int64_t>()) : call(Tag<std::uint64_t>());
  }
}

template <class F>
void withHostType(const TypeTraits& traits, F&& call) {
  if (traits.isBool) return call(Tag<bool>());
  if (traits.isIntegral) return withInteger(traits.size, traits.isSigned, call);
  switch (traits.size) {
    case 2: return call(Tag<_Float16>());
    case 4: return call(Tag<float>());
    case 8: return call(Tag<double>());
    default: return call(Tag<long double>());
  }
}

template <class From, class To>
void convert(const void* from, void* to, std::size_t count) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, from, count * sizeof(To));
  } else {
    const auto* in = static_cast<const From*>(from);
    auto* out = static_cast<To*>(to);
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<To>(in[i]);
  }
}

}  // namespace

void convertElements(const void* from, const TypeTraits& traits, void* to, Type type, std::size_t count) {
  withHostType(traits, [&](auto host) {
    withDeviceType(type, [&](auto device) {
      convert<typename decltype(host)::type, typename decltype(device)::type>(from, to, count);
    });
  });
}

void convertToHost(const void* from, Type type, void* to, const TypeTraits& traits, std::size_t count) {
  withHostType(traits, [&](auto host) {
    withDeviceType(type, [&](auto device) {
      convert<typename decltype(device)::type, typename decltype(host)::type>(from, to, count);
    });
  });
}

}  // namespace detail

void copyDeviceHalfToFloat(const Target&, const void* source, float* destination, std::size_t count) {
  convertFromDeviceType(HALF, source, destination, count);
}
void copyFloatToDeviceHalf(const Target&, const float* source, void* destination, std::size_t count) {
  convertToDeviceType(HALF, ArrayRef<float>(source, count), destination);
}
void copyDeviceHalfToDouble(const Target&, const void* source, double* destination, std::size_t count) {
  convertFromDeviceType(HALF, source, destination, count);
}
void copyDoubleToDeviceHalf(const Target&, const double* source, void* destination, std::size_t count) {
  convertToDeviceType(HALF, ArrayRef<double>(source, count), destination);
}

}  // namespace poplar
