// Floating-point exceptions: what `IPUConfig.floating_point_behaviour` has an IPU stop at. TensorFlow's kernels neither
// stop nor tell, so that each op's operands and results are looked at, where a configuration asks for it.
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

// By device. All that the checks cost where none is on is to read this.
extern std::atomic<uint8_t> float_checks[kMaxDevices];

inline uint8_t FloatChecksOf(int ordinal) { return float_checks[ordinal].load(std::memory_order_relaxed); }

// Looks at the operands of an op before it runs, as a kernel may overwrite them, and at its results afterwards.
class FloatWatch {
 public:
  void Begin(uint8_t checks, tensorflow::OpKernelContext* context);
  // An error where the op did what the device is to stop at.
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
