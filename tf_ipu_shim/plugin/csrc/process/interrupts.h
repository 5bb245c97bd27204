// Records a Ctrl-C, which kernels and waiting threads poll to end running programs. Python's handler only records the
// signal for its main thread, which waits in TensorFlow until the program ends. So an op that polls it fails, and
// Python raises KeyboardInterrupt when its thread returns (`runtime/interrupts.py`). Nothing is cancelled from outside:
// an op that fails ends its step, as after any error.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// The time of a Ctrl-C that Python has not handled yet, in milliseconds of the steady clock; 0 if none is pending.
extern std::atomic<int64_t> interrupted_at;
bool IsOverdue(int64_t since);

// Whether programs must stop. Not immediately after the signal: if Python is idle it handles it within microseconds,
// and other threads' programs continue.
inline bool Interrupted() {
  const int64_t since = interrupted_at.load(std::memory_order_relaxed);
  return __builtin_expect(since != 0, 0) && IsOverdue(since);
}
tensorflow::Status InterruptedError(const std::string& where);
// Whether an error contains the message of `InterruptedError`.
bool IsInterruptedError(const tensorflow::Status& error);

// Returns an error if this is Python's main thread with a pending Ctrl-C: Python would raise KeyboardInterrupt inside
// the call, not where the script waits.
tensorflow::Status CheckPythonInterrupt();

// The code that Python's functions return for a KeyboardInterrupt, which must not cross into C++.
inline constexpr int32_t kKeyboardInterrupt = -1;
// Has Python raise it again, when the script has its thread back.
tensorflow::Status RaiseInterruptAgain(const std::string& where);

}  // namespace tf_ipu_shim
