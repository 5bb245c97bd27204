// Spells the names of template vertices: templateVertex("Add", FLOAT, true) is "Add<float,true>".
#ifndef poputil_VertexTemplates_hpp
#define poputil_VertexTemplates_hpp

#include <poplar/StringRef.hpp>
#include <poplar/Type.hpp>
#include <string>
#include <type_traits>

namespace poputil {

// How a template argument is spelled. Specialise it for enumerations.
template <typename T>
struct VertexTemplateToString {
  static std::string to_string(const T &value) { return std::to_string(value); }
};

template <>
struct VertexTemplateToString<bool> {
  static std::string to_string(bool value) { return value ? "true" : "false"; }
};

template <>
struct VertexTemplateToString<poplar::Type> {
  static std::string to_string(const poplar::Type &type) { return type.toString(); }
};

template <>
struct VertexTemplateToString<std::string> {
  static std::string to_string(const std::string &text) { return text; }
};

template <>
struct VertexTemplateToString<poplar::StringRef> {
  static std::string to_string(const poplar::StringRef &text) { return text; }
};

template <>
struct VertexTemplateToString<const char *> {
  static std::string to_string(const char *text) { return text; }
};

template <>
struct VertexTemplateToString<char *> : VertexTemplateToString<const char *> {};

namespace detail {

inline std::string joinParameters() { return ""; }

template <typename First, typename... Rest>
std::string joinParameters(const First &first, const Rest &...rest) {
  using T = typename std::decay<const First &>::type;
  return "," + VertexTemplateToString<T>::to_string(first) + joinParameters(rest...);
}

}  // namespace detail

template <typename... Arguments>
inline std::string templateVertex(const std::string &name, const Arguments &...arguments) {
  const std::string parameters = detail::joinParameters(arguments...);
  return parameters.empty() ? name : name + "<" + parameters.substr(1) + ">";
}

}  // namespace poputil

#endif
