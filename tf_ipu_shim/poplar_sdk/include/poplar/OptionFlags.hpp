// Options: pairs of a name and a value, both strings.
#ifndef poplar_OptionFlags_hpp
#define poplar_OptionFlags_hpp

#include <poplar/StringRef.hpp>

#include <cstddef>
#include <initializer_list>
#include <map>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

namespace poplar {

class OptionFlags {
  using Map = std::map<std::string, std::string>;

 public:
  using OptionFlag = std::pair<std::string, std::string>;
  using const_iterator = Map::const_iterator;
  using iterator = const_iterator;
  using initializer_list = std::initializer_list<OptionFlag>;

  OptionFlags() = default;
  OptionFlags(initializer_list list) { set(list); }

  // Sets each option of the list; one named before is overwritten.
  void set(initializer_list list) {
    for (const auto& [name, value] : list) values_[name] = value;
  }
  void set(StringRef name, StringRef value) { values_[name.str()] = value.str(); }
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  void set(StringRef name, T value) {
    values_[name.str()] = text(value);
  }
  void clear() { values_.clear(); }
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  // The value of an option; throws std::out_of_range if it is not set.
  const std::string& at(StringRef name) const { return values_.at(name.str()); }
  const_iterator find(StringRef name) const { return values_.find(name.str()); }
  const_iterator begin() const { return values_.begin(); }
  const_iterator end() const { return values_.end(); }
  bool operator==(const OptionFlags& other) const { return values_ == other.values_; }
  bool operator!=(const OptionFlags& other) const { return values_ != other.values_; }
  bool operator<(const OptionFlags& other) const { return values_ < other.values_; }

 private:
  template <class T>
  static std::string text(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value ? "true" : "false";
    } else {
      return std::to_string(value);
    }
  }
  Map values_;
};

std::ostream& operator<<(std::ostream& out, const OptionFlags& options);
// Adds the options of a JSON object; throws parse_error if the text is not one of names and simple values.
void readJSON(StringRef text, OptionFlags& options);
void readJSON(std::istream& in, OptionFlags& options);
// The same for the text of an environment variable; one that is empty or not set adds none.
void readJSONFromEnv(StringRef variable, OptionFlags& options);

}  // namespace poplar

#endif
