// Floating-point exceptions that `IPUConfig.floating_point_behaviour` enables. TensorFlow's kernels report none, so the
// operands and results of each op are checked if a configuration asks for it.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/arena.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

enum FloatCheck : uint8_t {
  kInvalidOperation = 1,
  kDivisionByZero = 2,
  kOverflow = 4,
  kNanOnOverflow = 8,  // float16 results that overflow become NaN
};

// The enabled checks of each device. Reading this is the only cost if none is enabled.
extern std::atomic<uint8_t> float_checks[kMaxDevices];

inline uint8_t FloatChecksOf(int ordinal) { return float_checks[ordinal].load(std::memory_order_relaxed); }

// Checks an op's operands before it runs, because a kernel may overwrite them, and its results afterwards.
class FloatChecker {
 public:
  void Begin(uint8_t checks, tensorflow::OpKernelContext* context);
  // Returns an error if the op raised an enabled floating-point exception.
  tensorflow::Status End(tensorflow::OpKernelContext* context, int ordinal, int chip);

 private:
  uint8_t checks_ = 0;     // none for ops that only move data
  bool has_operands_ = false;
  bool nan_ = false;       // among the operands
  bool infinite_ = false;  // the same
  int64_t poles_ = 0;      // results that are infinite because something is divided by zero
  bool may_overflow_ = false;   // in float16
  tensorflow::Tensor divisor_;  // of float16
};

}  // namespace tf_ipu_shim
