// Non-owning references to strings.
#ifndef poplar_StringRef_hpp
#define poplar_StringRef_hpp

#include <poplar/ArrayRef.hpp>

#include <cstring>
#include <ostream>
#include <string>
#include <string_view>

namespace poplar {

class StringRef : public ArrayRef<char> {
 public:
  constexpr StringRef() = default;
  StringRef(const std::string& text) : ArrayRef<char>(text.data(), text.size()) {}
  StringRef(const char* text) : ArrayRef<char>(text, text ? std::strlen(text) : 0) {}
  constexpr StringRef(const char* text, std::size_t size) : ArrayRef<char>(text, size) {}
  constexpr StringRef(std::string_view text) : ArrayRef<char>(text.data(), text.size()) {}

  std::string cloneAsString() const { return std::string(begin(), end()); }
  std::string str() const { return cloneAsString(); }
  operator std::string() const { return cloneAsString(); }
  constexpr std::string_view view() const { return {data(), size()}; }
};

inline bool operator==(StringRef a, StringRef b) { return a.view() == b.view(); }
inline bool operator!=(StringRef a, StringRef b) { return a.view() != b.view(); }
inline bool operator<(StringRef a, StringRef b) { return a.view() < b.view(); }
inline std::string operator+(StringRef a, StringRef b) { return a.str() + b.str(); }
inline std::string operator+(const std::string& a, StringRef b) { return a + b.str(); }
inline std::string operator+(StringRef a, const std::string& b) { return a.str() + b; }
inline std::string operator+(const char* a, StringRef b) { return a + b.str(); }
inline std::string operator+(StringRef a, const char* b) { return a.str() + b; }
inline std::string& operator+=(std::string& a, StringRef b) { return a.append(b.data(), b.size()); }
inline std::ostream& operator<<(std::ostream& out, StringRef text) { return out << text.view(); }

}  // namespace poplar

#endif
