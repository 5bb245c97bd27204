// Stochastic rounding: a float32 becomes one of the two float16 next to it, at random, the nearer one more often. What
// ops round so, and when: `floating_point_behaviour.esr` of the device, or a mark on the op.
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

// By device. All that rounding costs where it is off is to read this.
extern std::atomic<uint8_t> roundings[kMaxDevices];

// Whether results of an op, or variables that it updates, are float16 and rounded.
bool RoundsHalves(const tensorflow::OpKernel& kernel);

// How one op rounds.
class OpRounding {
 public:
  OpRounding(const tensorflow::NodeDef& node, int ordinal);

  bool IsStochastic() const {
    return mark_ == Mark::kNone ? (roundings[ordinal_].load(std::memory_order_relaxed) & kStochastic) != 0
                                : mark_ == Mark::kOn;
  }

  // The seed of one run. Where replicas are to round the same numbers alike, it follows from the operands instead of
  // the chip: what replicas have in common stays so.
  uint64_t Draw(tensorflow::OpKernelContext* context) const;

 private:
  enum class Mark { kNone, kOn, kOff };

  const int ordinal_;
  int chip_ = 0;
  uint64_t op_ = 0;
  Mark mark_ = Mark::kNone;
};

// Rounds float32 to float16. What is too large is infinite where rounding to the nearest would make it so.
void RoundStochastically(const tensorflow::Tensor& from, uint64_t seed, tensorflow::Tensor* to);

// A kernel that runs another one of the same op where it rounds to the nearest, and the CPU's of float32 where it does
// not.
tensorflow::OpKernel* Rounding(tensorflow::OpKernelConstruction* construction,
                               std::unique_ptr<tensorflow::OpKernel> nearest, int ordinal);

}  // namespace tf_ipu_shim
