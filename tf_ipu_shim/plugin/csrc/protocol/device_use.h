// Encodes how a device may be used (run, return zeros, compile only) in messages from Python.
#pragma once

#include <cstdint>
#include <string>

#include "device/first_use.h"
#include "protocol/wire.h"

namespace tf_ipu_shim {

template <>
struct Wire<Use> {
  static constexpr WireType kType = WireType::kVarint;
  static bool IsDefault(Use value) { return value == Use::kRun; }
  static bool Read(WireCursor* from, Use* value, std::string* problem) {
    int32_t number;
    if (!Wire<int32_t>::Read(from, &number, problem)) return false;
    *value = static_cast<Use>(number);
    return number >= static_cast<int32_t>(Use::kRun) && number <= static_cast<int32_t>(Use::kUnattached);
  }
  static bool Append(Use value, std::string* bytes) {
    return Wire<int32_t>::Append(static_cast<int32_t>(value), bytes);
  }
};

}  // namespace tf_ipu_shim
