// Reads how long replicas wait for each other: `TF_IPU_SHIM_COLLECTIVE_TIMEOUT`, or ten minutes.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdlib>

namespace tf_ipu_shim {

inline constexpr char kWaitLimitVariable[] = "TF_IPU_SHIM_COLLECTIVE_TIMEOUT";

// `TF_IPU_SHIM_COLLECTIVE_TIMEOUT`, else ten minutes: the first run of another replica may have much to compile. Python
// refuses other values before it loads this library; a script that sets one later gets the ten minutes.
inline std::chrono::milliseconds WaitLimit() {
  constexpr double kDefault = 600, kLongest = 1e9;
  const char* const text = std::getenv(kWaitLimitVariable);
  char* end = nullptr;
  const double seconds = text == nullptr ? kDefault : std::strtod(text, &end);
  const bool is_number = text == nullptr || (end != text && *end == 0 && seconds > 0);
  return std::chrono::milliseconds(static_cast<int64_t>(1000 * std::fmin(is_number ? seconds : kDefault, kLongest)));
}

}  // namespace tf_ipu_shim
