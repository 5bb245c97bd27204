#include "wire.h"

namespace tf_ipu_shim {
namespace {

constexpr int kLongestVarint = 10;  // bytes of a 64-bit number

}  // namespace

bool WireCursor::Varint(uint64_t* value) {
  *value = 0;
  for (int i = 0; i < kLongestVarint && at_ != end_; ++i) {
    const uint64_t byte = static_cast<unsigned char>(*at_++);
    if (i == kLongestVarint - 1 && byte > 1) return false;
    *value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) return true;
  }
  return false;
}

bool WireCursor::Fixed64(uint64_t* value) {
  if (size() < sizeof(*value)) return false;
  std::memcpy(value, at_, sizeof(*value));  // both are little-endian on every platform TensorFlow has wheels for
  at_ += sizeof(*value);
  return true;
}

bool WireCursor::Delimited(WireCursor* inside) {
  uint64_t length;
  if (!Varint(&length) || length > size()) return false;
  *inside = WireCursor(at_, at_ + length);
  at_ += length;
  return true;
}

void AppendVarint(uint64_t value, std::string* bytes) {
  for (; value >= 0x80; value >>= 7) bytes->push_back(static_cast<char>(value | 0x80));
  bytes->push_back(static_cast<char>(value));
}

void AppendFixed64(uint64_t value, std::string* bytes) {
  char raw[sizeof(value)];
  std::memcpy(raw, &value, sizeof(value));
  bytes->append(raw, sizeof(raw));
}

void AppendDelimited(const std::string& value, std::string* bytes) {
  AppendVarint(value.size(), bytes);
  bytes->append(value);
}

}  // namespace tf_ipu_shim
