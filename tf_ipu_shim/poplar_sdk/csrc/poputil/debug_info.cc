// Records the arguments and results of library functions as debug information.
#include <poputil/DebugInfo.hpp>

namespace poputil {

poplar::ProfileValue toProfileValue(const poplar::Tensor &tensor) {
  poplar::ProfileValue::Map values;
  values.insert({"type", toProfileValue(tensor.elementType())});
  values.insert({"shape", toProfileValue(tensor.shape())});
  return poplar::ProfileValue(std::move(values));
}

poplar::ProfileValue toProfileValue(const poplar::OptionFlags &options) {
  poplar::ProfileValue::Map values;
  for (const auto &[name, value] : options) values.insert({name, poplar::ProfileValue(value)});
  return poplar::ProfileValue(std::move(values));
}

poplar::ProfileValue toProfileValue(const poplar::ComputeSet &computeSet) {
  return poplar::ProfileValue(static_cast<double>(computeSet.getId()));
}

poplar::ProfileValue toProfileValue(const poplar::Type &type) { return poplar::ProfileValue(std::string(type.toString())); }

OpDebugInfo::OpDebugInfo(const poplar::DebugContext &debugContext, std::string api)
    : poplar::DebugInfo(debugContext, "poplibs") {
  setValue("api", poplar::ProfileValue(std::move(api)));
}

void OpDebugInfo::add(std::string name, const std::vector<ArgType> &arguments) {
  poplar::ProfileValue::Map values;
  for (const auto &argument : arguments) values.insert({argument.n, argument.pv});
  add(std::move(name), poplar::ProfileValue(std::move(values)));
}

void OpDebugInfo::add(std::string name, poplar::ProfileValue value) { setValue(std::move(name), value); }

PoplibsOpDebugInfo::PoplibsOpDebugInfo(const poplar::DebugContext &debugContext, const std::vector<ArgType> &arguments,
                                       const std::string &api)
    : OpDebugInfo(debugContext, api) {
  if (!arguments.empty()) add("args", arguments);
}

void PoplibsOpDebugInfo::addOutputs(const std::vector<ArgType> &outputs) { add("outputs", outputs); }

void PoplibsOpDebugInfo::addOutput(const poplar::Tensor &output) {
  addOutputs({ArgType("output", toProfileValue(output))});
}

namespace detail {

std::vector<std::string> splitNames(const std::string &list) {
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : list) {
    if (c == '(' || c == '{' || c == '<' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == '>' || c == ']') --depth;
    if (c == ',' && depth == 0) names.emplace_back();
    else if (c != ' ' || !names.back().empty()) names.back() += c;
  }
  return names;
}

}  // namespace detail
}  // namespace poputil
