// Ctrl-C while programs run. Python's own handler only notes the signal for its main thread, which waits in TensorFlow
// until the program ends. So the signal is noted here too; kernels, and whatever waits, look at the note and fail, and
// Python raises KeyboardInterrupt when it has its thread back (`runtime/interrupts.py`). Nothing is cancelled from
// outside: an op that fails ends its step, as after any error.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// When a Ctrl-C came that Python has not answered, in milliseconds of the steady clock; 0 where there is none.
extern std::atomic<int64_t> interrupted_at;
bool IsOverdue(int64_t since);

// Whether programs have to end. Not at once: where Python is free it answers within microseconds, and what other threads
// run goes on.
inline bool Interrupted() {
  const int64_t since = interrupted_at.load(std::memory_order_relaxed);
  return __builtin_expect(since != 0, 0) && IsOverdue(since);
}
tensorflow::Status InterruptedError(const std::string& where);
// Whether another error has the text of that one.
bool SaysInterrupted(const tensorflow::Status& error);

// An error where this thread is Python's main one and has a Ctrl-C to answer: it would do so in whatever it is called
// for, and not where the script waits.
tensorflow::Status MayInterruptPython();

// What Python's functions return for a KeyboardInterrupt, which may not cross into C++.
inline constexpr int32_t kKeyboardInterrupt = -1;
// Has Python raise it again, when the script has its thread back.
tensorflow::Status InterruptAgain(const std::string& where);

}  // namespace tf_ipu_shim
