// The names that C++ types have in Poplar (`half`, `unsigned int`), for the fields of vertices.
#ifndef POPLAR_DETAIL_TYPE_NAMES_HPP
#define POPLAR_DETAIL_TYPE_NAMES_HPP

#include <poplar/HalfFloat.hpp>

#include <cstdint>
#include <type_traits>

namespace poplar::detail {

// The name that a type has in Poplar; empty for what no tensor can hold.
template <typename T>
constexpr const char* typeName() {
  if constexpr (std::is_const_v<T>) return typeName<std::remove_const_t<T>>();
  else if constexpr (std::is_enum_v<T>) return typeName<std::underlying_type_t<T>>();
  else if constexpr (std::is_same_v<T, float>) return "float";
  else if constexpr (std::is_same_v<T, half>) return "half";
  else if constexpr (std::is_same_v<T, double>) return "double";
  else if constexpr (std::is_same_v<T, bool>) return "bool";
  else if constexpr (std::is_same_v<T, char>) return "char";
  else if constexpr (std::is_same_v<T, signed char>) return "signed char";
  else if constexpr (std::is_same_v<T, unsigned char>) return "unsigned char";
  else if constexpr (std::is_same_v<T, short>) return "short";
  else if constexpr (std::is_same_v<T, unsigned short>) return "unsigned short";
  else if constexpr (std::is_same_v<T, int>) return "int";
  else if constexpr (std::is_same_v<T, unsigned int>) return "unsigned int";
  // `int64_t` of this CPU is `long`; on an IPU it is `long long`.
  else if constexpr (std::is_same_v<T, long> || std::is_same_v<T, long long>) return "long long";
  else if constexpr (std::is_same_v<T, unsigned long> || std::is_same_v<T, unsigned long long>)
    return "unsigned long long";
  else return "";
}

}  // namespace poplar::detail

#endif
