// Writes strings and lists as JSON.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_JSON_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_JSON_HPP_

#include <initializer_list>
#include <string>

namespace tf_ipu_shim {

// A string in quotes. Bytes that are no printable ASCII are left out of names.
inline std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') result += '\\';
    if (byte >= ' ' && byte <= '~') result += byte;
  }
  return result + "\"";
}

class JsonList {
 public:
  JsonList() = default;
  JsonList(std::initializer_list<std::string> values) {
    for (const std::string& value : values) add(value);
  }
  void add(const std::string& value) { text_ += (text_.empty() ? "" : ",") + value; }
  std::string text() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_JSON_HPP_
