// What TensorFlow's own headers use of FarmHash, whose header its wheels leave out. Declarations only: nothing of ours
// calls them, and the wheel's library has the definitions.
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
