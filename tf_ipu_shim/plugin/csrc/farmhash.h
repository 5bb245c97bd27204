// Declares the FarmHash functions that TensorFlow's headers use but its wheels do not ship. The definitions are in the
// wheel's library; the plugin itself calls none of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace util {

using uint128_t = std::pair<uint64_t, uint64_t>;
uint32_t Fingerprint32(const char* text, size_t size);
uint64_t Fingerprint64(const char* text, size_t size);
uint128_t Fingerprint128(const char* text, size_t size);
inline uint64_t Uint128Low64(const uint128_t value) { return value.first; }
inline uint64_t Uint128High64(const uint128_t value) { return value.second; }

}  // namespace util
