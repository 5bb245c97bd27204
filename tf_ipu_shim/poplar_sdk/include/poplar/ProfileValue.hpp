// Values of debug information: booleans, numbers, strings, vectors and maps.
#ifndef poplar_ProfileValue_hpp
#define poplar_ProfileValue_hpp

#include <poplar/StringRef.hpp>

#include <cstddef>
#include <map>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace poplar {

class ProfileValue {
 public:
  using Boolean = bool;
  using Number = double;
  using String = std::string;
  using Vector = std::vector<ProfileValue>;
  using Map = std::map<std::string, ProfileValue>;

  ProfileValue() = default;
  template <class T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, int> = 0>
  ProfileValue(T value) : value_(static_cast<Number>(value)) {}
  explicit ProfileValue(bool value) : value_(value) {}
  ProfileValue(std::string value) : value_(std::move(value)) {}
  ProfileValue(const char* value) : value_(std::string(value)) {}
  ProfileValue(StringRef value) : value_(value.str()) {}
  ProfileValue(Vector value) : value_(std::move(value)) {}
  ProfileValue(Map value) : value_(std::move(value)) {}

  Boolean asBool() const { return std::get<Boolean>(value_); }
  double asDouble() const { return std::get<Number>(value_); }
  int asInt() const { return static_cast<int>(asDouble()); }
  unsigned asUint() const { return static_cast<unsigned>(asDouble()); }
  const String& asString() const { return std::get<String>(value_); }
  const Vector& asVector() const { return std::get<Vector>(value_); }
  const Map& asMap() const { return std::get<Map>(value_); }
  const ProfileValue& operator[](StringRef key) const { return asMap().at(key.str()); }
  const ProfileValue& operator[](std::size_t index) const { return asVector().at(index); }
  std::size_t size() const { return std::holds_alternative<Map>(value_) ? asMap().size() : asVector().size(); }
  bool operator==(const ProfileValue& other) const { return value_ == other.value_; }
  const auto& variant() const { return value_; }

 private:
  std::variant<std::monostate, Boolean, Number, String, Vector, Map> value_;
};

// Writes the value as JSON.
void serializeToJSON(std::ostream& out, const ProfileValue& value, bool prettyPrint = false);

}  // namespace poplar

#endif
