// Parses OptionFlags: a specification maps each option's name to a handler of its value.
#ifndef poputil_OptionParsing_hpp
#define poputil_OptionParsing_hpp

#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <poplar/StringRef.hpp>
#include <poplar/exceptions.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace poplibs {
namespace parse {

// Reads the whole text as a value of type T, in hexadecimal after "0x".
template <typename T>
T asInteger(const poplar::StringRef &text) {
  const std::string value = text;
  std::istringstream stream(value);
  if (value.find("0x") != std::string::npos) stream >> std::hex;
  T result;
  if (!(stream >> result) || stream.peek() != std::istringstream::traits_type::eof())
    throw poplar::invalid_option("Not a valid integer");
  return result;
}

template <typename T>
T asFloatingPoint(const poplar::StringRef &text) {
  std::istringstream stream{std::string(text)};
  T result;
  if (!(stream >> result)) throw poplar::invalid_option("Not a floating point number");
  return result;
}

template <typename T>
std::string describeEnumValues(const std::map<std::string, T> &values) {
  std::string text;
  for (const auto &entry : values) text += (text.empty() ? "'" : ", '") + entry.first + "'";
  return "[" + text + "]";
}

template <typename T>
T asEnum(const poplar::StringRef &text, const std::map<std::string, T> &values) {
  const auto found = values.find(text);
  if (found == values.end()) throw poplar::invalid_option("Not one of the values: " + describeEnumValues(values));
  return found->second;
}

inline bool asBool(const poplar::StringRef &text) {
  return asEnum<bool>(text, std::map<std::string, bool>{{"false", false}, {"true", true}});
}

}  // namespace parse

class OptionHandler {
 public:
  template <typename T>
  OptionHandler(T &&handler) : handler_(std::forward<T>(handler)) {}

  void parseValue(poplar::StringRef value) const { handler_(value); }

  template <typename T, typename ValueMap = std::map<std::string, T>>
  static OptionHandler createWithEnum(T &output, ValueMap &&values) {
    return OptionHandler{[map = std::map<std::string, T>(values), &output](poplar::StringRef value) {
      output = parse::asEnum<T>(value, map);
    }};
  }

  template <typename T>
  static OptionHandler createWithInteger(T &output) {
    return OptionHandler{[&output](poplar::StringRef value) { output = parse::asInteger<int>(value); }};
  }

  template <typename T>
  static OptionHandler createWithBool(T &output) {
    return OptionHandler{[&output](poplar::StringRef value) { output = static_cast<T>(parse::asBool(value)); }};
  }

  static OptionHandler createWithString(std::string &output) {
    return OptionHandler{[&output](poplar::StringRef value) { output = std::string(value); }};
  }

  template <typename T>
  static void ensureValueIsWithinBounds(T value, const T &lower, bool lowerInclusive, const T &upper,
                                        bool upperInclusive) {
    if (value < lower || (!lowerInclusive && value == lower))
      throw poplar::invalid_option(std::string("Value must be greater than ") +
                                   (lowerInclusive ? "or equal to " : "") + std::to_string(lower));
    if (value > upper || (!upperInclusive && value == upper))
      throw poplar::invalid_option(std::string("Value must be less than ") + (upperInclusive ? "or equal to " : "") +
                                   std::to_string(upper));
  }

  template <typename T>
  static OptionHandler createWithDouble(T &output, double lower = std::numeric_limits<double>::min(),
                                        bool lowerInclusive = true, double upper = std::numeric_limits<double>::max(),
                                        bool upperInclusive = true) {
    return OptionHandler{[=, &output](poplar::StringRef text) {
      const auto value = parse::asFloatingPoint<double>(text);
      ensureValueIsWithinBounds(value, lower, lowerInclusive, upper, upperInclusive);
      output = value;
    }};
  }

  template <typename T>
  static OptionHandler createWithList(std::vector<T> &output) {
    return OptionHandler{[&output](poplar::StringRef text) {
      std::istringstream stream{std::string(text)};
      for (std::string element; std::getline(stream, element, ',');)
        output.push_back(parse::asInteger<T>(poplar::StringRef(element)));
    }};
  }

 private:
  std::function<void(poplar::StringRef)> handler_;
};

class OptionSpec {
 public:
  OptionSpec(std::initializer_list<std::pair<const std::string, OptionHandler>> &&handlers) : handlers_(handlers) {}

  void parse(poplar::StringRef option, poplar::StringRef value, bool ignoreUnknown = false) const {
    const auto found = handlers_.find(option);
    if (found == handlers_.end()) {
      if (ignoreUnknown) return;
      throw poplar::invalid_option("Unrecognised option '" + std::string(option) + "'");
    }
    try {
      found->second.parseValue(value);
    } catch (const poplar::invalid_option &error) {
      throw poplar::invalid_option("Invalid value '" + std::string(value) + "' for option '" + std::string(option) +
                                   "': " + error.what());
    }
  }

 private:
  std::map<std::string, OptionHandler> handlers_;
};

}  // namespace poplibs

#endif
