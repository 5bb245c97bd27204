// Reads and writes protobuf varints and length-delimited fields.
#include "protocol/wire.h"

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

bool ReadDelimited(WireCursor* from, std::string* value) {
  WireCursor inside(nullptr, nullptr);
  if (!from->Delimited(&inside)) return false;
  value->assign(inside.data(), inside.size());
  return true;
}

bool IsUtf8(const std::string& text) {
  // The least code point that is written with so many bytes after the first.
  constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  for (size_t at = 0; at < text.size();) {
    const uint8_t first = text[at++];
    const int more = first < 0x80 ? 0 : first >> 5 == 0x6 ? 1 : first >> 4 == 0xe ? 2 : first >> 3 == 0x1e ? 3 : -1;
    if (more < 0 || text.size() - at < static_cast<size_t>(more)) return false;
    uint32_t point = more == 0 ? first : first & (0x3f >> more);
    for (int i = 0; i < more; ++i) {
      const uint8_t next = text[at++];
      if (next >> 6 != 0x2) return false;
      point = point << 6 | (next & 0x3f);
    }
    const bool is_surrogate = point >= 0xd800 && point < 0xe000;
    if (point < kLeast[more] || point > 0x10ffff || is_surrogate) return false;
  }
  return true;
}

}  // namespace tf_ipu_shim
