// Stochastic rounding: a float32 becomes one of the two nearest float16 values at random, the nearer one more often.
// `floating_point_behaviour.esr` of the device, or an attribute of the op, selects the ops that round so.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "device/arena.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace tf_ipu_shim {

// Bits of `runtime.stochastic_rounding.Rounding`.
enum RoundingBits : uint8_t { kStochastic = 1, kSameForSame = 2 };

// The rounding bits of each device. Reading this is the only cost if rounding is off.
extern std::atomic<uint8_t> roundings[kMaxDevices];

// Whether results of an op, or variables that it updates, are float16 and rounded.
bool RoundsToFloat16(const tensorflow::OpKernel& kernel);

// How one op rounds.
class OpRounding {
 public:
  OpRounding(const tensorflow::NodeDef& node, int ordinal);

  bool IsStochastic() const {
    return mark_ == Mark::kNone ? (roundings[ordinal_].load(std::memory_order_relaxed) & kStochastic) != 0
                                : mark_ == Mark::kOn;
  }

  // The seed of one run. If replicas must round equal values equally, it is derived from the operands instead of the
  // chip.
  uint64_t Draw(tensorflow::OpKernelContext* context) const;

 private:
  enum class Mark { kNone, kOn, kOff };

  const int ordinal_;
  int chip_ = 0;
  uint64_t op_ = 0;
  Mark mark_ = Mark::kNone;
};

// Rounds float32 to float16. Values overflow to infinity if rounding to nearest would.
void RoundStochastically(const tensorflow::Tensor& from, uint64_t seed, tensorflow::Tensor* to);

// Returns a kernel that runs `nearest` if the op rounds to nearest, else the CPU's float32 kernel with stochastic
// rounding.
tensorflow::OpKernel* MakeRoundingKernel(tensorflow::OpKernelConstruction* construction,
                                         std::unique_ptr<tensorflow::OpKernel> nearest, int ordinal);

}  // namespace tf_ipu_shim
