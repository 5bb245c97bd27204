// Records the arguments and results of library functions as debug information.
#ifndef poputil_DebugInfo_hpp
#define poputil_DebugInfo_hpp

#include <array>
#include <poplar/DebugContext.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/ProfileValue.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/TensorCloneMethod.hpp>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace poputil {

poplar::ProfileValue toProfileValue(const poplar::Tensor &tensor);
poplar::ProfileValue toProfileValue(const poplar::OptionFlags &options);
poplar::ProfileValue toProfileValue(const poplar::ComputeSet &computeSet);
poplar::ProfileValue toProfileValue(const poplar::Type &type);

namespace detail {

template <typename T>
poplar::ProfileValue valueOf(const T &value, std::true_type /* a number or enumeration */) {
  return poplar::ProfileValue(static_cast<double>(value));
}
template <typename T>
poplar::ProfileValue valueOf(const T &value, std::false_type) {
  (void)value;
  return poplar::ProfileValue(std::string("<") + typeid(T).name() + ">");
}

}  // namespace detail

// Numbers and enumerations by their value, other types by their name. Specialise it for types of your own.
template <typename T>
poplar::ProfileValue toProfileValue(const T &value) {
  return detail::valueOf(
      value, std::integral_constant<bool, std::is_arithmetic<T>::value || std::is_enum<T>::value>());
}

inline poplar::ProfileValue toProfileValue(const bool &value) {
  return poplar::ProfileValue(value ? "true" : "false");
}
inline poplar::ProfileValue toProfileValue(const std::string &value) { return poplar::ProfileValue(value); }
inline poplar::ProfileValue toProfileValue(const char *value) { return poplar::ProfileValue(value); }

template <typename T>
poplar::ProfileValue toProfileValue(const std::vector<T> &values) {
  poplar::ProfileValue::Vector result;
  for (const auto &value : values) result.push_back(toProfileValue(static_cast<const T &>(value)));
  return poplar::ProfileValue(std::move(result));
}

template <typename T, std::size_t N>
poplar::ProfileValue toProfileValue(const std::array<T, N> &values) {
  return toProfileValue(std::vector<T>(values.begin(), values.end()));
}

template <typename T1, typename T2>
poplar::ProfileValue toProfileValue(const std::pair<T1, T2> &pair) {
  return poplar::ProfileValue(
      poplar::ProfileValue::Map{{"first", toProfileValue(pair.first)}, {"second", toProfileValue(pair.second)}});
}

template <typename T>
poplar::ProfileValue toProfileValue(T *const &pointer) {
  return pointer == nullptr ? poplar::ProfileValue("<nullptr>") : toProfileValue(*pointer);
}

// The name of an argument and its value.
class ArgType {
 public:
  std::string n;
  poplar::ProfileValue pv;
  ArgType(const std::string &name, const poplar::ProfileValue &value) : n(name), pv(value) {}
  ArgType(const std::pair<std::string, const poplar::ProfileValue> &pair) : n(pair.first), pv(pair.second) {}
};

class OpDebugInfo : public poplar::DebugInfo {
 public:
  OpDebugInfo(const poplar::DebugContext &debugContext, std::string api);
  void add(std::string name, const std::vector<ArgType> &arguments);
  void add(std::string name, poplar::ProfileValue value);
};

// Made at the begin of a library function from DI_ARGS(its arguments); its results are added at the end.
class PoplibsOpDebugInfo : public OpDebugInfo {
 public:
  PoplibsOpDebugInfo(const poplar::DebugContext &debugContext, const std::vector<ArgType> &arguments = {},
                     const std::string &api = __builtin_FUNCTION());
  void addOutputs(const std::vector<ArgType> &outputs);
  void addOutput(const poplar::Tensor &output);
};

namespace detail {

// The parts of a macro's argument list, which are separated by commas.
std::vector<std::string> splitNames(const std::string &list);

template <typename... Values>
std::vector<ArgType> nameValues(const char *list, const Values &...values) {
  const auto names = splitNames(list);
  std::vector<ArgType> result;
  std::size_t index = 0;
  const int expansion[] = {(result.emplace_back(names.at(index++), toProfileValue(values)), 0)...};
  (void)expansion;
  return result;
}

}  // namespace detail
}  // namespace poputil

// The arguments with their names: DI_ARGS(a, b) is {{"a", value of a}, {"b", value of b}}.
#define DI_ARGS(...) ::poputil::detail::nameValues(#__VA_ARGS__, __VA_ARGS__)

#endif
