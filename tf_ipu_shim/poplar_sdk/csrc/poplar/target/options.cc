// Reads, prints and writes option flags and debug information as text and JSON.
#include <poplar/DebugContext.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/ProfileValue.hpp>
#include <poplar/exceptions.hpp>

#include <atomic>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <istream>
#include <iterator>
#include <ostream>

namespace poplar {

std::ostream& operator<<(std::ostream& out, const OptionFlags& options) {
  out << '{';
  const char* separator = "";
  for (const auto& [name, value] : options) {
    out << separator << '"' << name << "\": \"" << value << '"';
    separator = ", ";
  }
  return out << '}';
}

namespace {

// Reads a JSON object whose values are strings, numbers, booleans or null.
class FlatReader {
 public:
  explicit FlatReader(StringRef text) : text_(text.str()) {}

  void read(OptionFlags& options) {
    expect('{');
    if (next() == '}') return finish();
    while (true) {
      const std::string name = string();
      expect(':');
      options.set(name, next() == '"' ? string() : word());
      if (next() == '}') return finish();
      expect(',');
    }
  }

 private:
  char next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char mark) {
    if (next() != mark) fail(std::string("'") + mark + "'");
    ++at_;
  }
  void finish() {
    expect('}');
    if (next() != '\0') fail("the end");
  }
  std::string string() {
    expect('"');
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) value += text_[at_++];
    }
    expect('"');
    return value;
  }
  std::string word() {
    std::string value;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' ||
                                  text_[at_] == '-' || text_[at_] == '+'))
      value += text_[at_++];
    if (value.empty()) fail("a simple value");
    return value;
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw parse_error("readJSON: expected " + expected + " at character " + std::to_string(at_) +
                      ". Pass one JSON object with strings, numbers or booleans.");
  }

  std::string text_;
  std::size_t at_ = 0;
};

void writeString(std::ostream& out, const std::string& text) {
  constexpr char digits[] = "0123456789abcdef";
  out << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out << "\\u00" << digits[c >> 4] << digits[c & 15];
    } else {
      out << c;
    }
  }
  out << '"';
}

struct JsonWriter {
  std::ostream& out;
  void operator()(std::monostate) const { out << "null"; }
  void operator()(bool value) const { out << (value ? "true" : "false"); }
  void operator()(double value) const {
    const auto digits = out.precision(17);
    std::isfinite(value) ? out << value : out << "null";
    out.precision(digits);
  }
  void operator()(const std::string& value) const { writeString(out, value); }
  void operator()(const ProfileValue::Vector& values) const {
    out << '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i) out << ',';
      std::visit(*this, values[i].variant());
    }
    out << ']';
  }
  void operator()(const ProfileValue::Map& values) const {
    out << '{';
    const char* separator = "";
    for (const auto& [name, value] : values) {
      out << separator;
      writeString(out, name);
      out << ':';
      std::visit(*this, value.variant());
      separator = ",";
    }
    out << '}';
  }
};

std::atomic<DebugId> last_debug_id{0};

}  // namespace

void readJSON(StringRef text, OptionFlags& options) { FlatReader(text).read(options); }

void readJSON(std::istream& in, OptionFlags& options) {
  readJSON(std::string(std::istreambuf_iterator<char>(in), {}), options);
}

void readJSONFromEnv(StringRef variable, OptionFlags& options) {
  const char* text = std::getenv(variable.str().c_str());
  if (!text || !*text) return;
  try {
    readJSON(StringRef(text), options);
  } catch (const parse_error& error) {
    throw parse_error(variable.str() + ": " + error.what());
  }
}

void serializeToJSON(std::ostream& out, const ProfileValue& value, bool) { std::visit(JsonWriter{out}, value.variant()); }

DebugInfo::DebugInfo(const DebugContext& context, std::string layer)
    : id_(++last_debug_id), path_(context.getPathName()) {
  values_["layer"] = std::move(layer);
}
DebugInfo::~DebugInfo() = default;

bool DebugInfo::setValue(std::string name, const ProfileValue& value) {
  values_[std::move(name)] = value;
  return true;
}

}  // namespace poplar
