// `IpuRandomSeed`: the random seed of one run of a program, or of one replica in it. It is derived from the device's
// seed and the number of runs since it was set. Without a device seed, it comes from the seeds of the script's ops, or
// from the operating system.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <random>
#include <unordered_map>

#include "device/arena.h"
#include "floats/random_seed.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

struct SeedState {
  mutex mu;
  bool is_set = false;
  bool identical_replicas = false;
  uint64_t seed = 0;
  uint64_t runs[kMaxChips] = {};  // by replica
  uint64_t unset_seed = 0;        // of rounding, where none was set; 0 before its first use
  std::unordered_map<uint64_t, uint64_t> roundings;  // by op and chip
};

SeedState& SeedOf(int device_ordinal) {
  static auto* states = new SeedState[kMaxDevices];
  return states[device_ordinal];
}

uint64_t Entropy() {
  static auto* entropy = new std::random_device;
  return (static_cast<uint64_t>((*entropy)()) << 32) | (*entropy)();
}

REGISTER_OP("IpuRandomSeed")
    .Output("seed: int32")
    .Attr("ordinal: int >= 0")
    .Attr("explicit_seed: int = 0")
    .Attr("replica: int >= 0 = 0")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* context) {
      context->set_output(0, context->Vector(2));
      return OkStatus();
    });

class IpuRandomSeedOp : public OpKernel {
 public:
  explicit IpuRandomSeedOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("ordinal", &ordinal_));
    OP_REQUIRES_OK(context, context->GetAttr("explicit_seed", &explicit_seed_));
    OP_REQUIRES_OK(context, context->GetAttr("replica", &replica_));
    OP_REQUIRES(context, replica_ < kMaxChips, errors::InvalidArgument("There is no replica ", replica_));
    OP_REQUIRES(context, ordinal_ < kMaxDevices, errors::InvalidArgument("There is no device /device:IPU:", ordinal_));
  }

  void Compute(OpKernelContext* context) override {
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({2}), &output));
    const uint64_t drawn = Draw();
    output->flat<int32_t>()(0) = static_cast<int32_t>(drawn);
    output->flat<int32_t>()(1) = static_cast<int32_t>(drawn >> 32);
  }
  bool IsExpensive() override { return false; }

 private:
  uint64_t Draw() {
    SeedState& state = SeedOf(ordinal_);
    mutex_lock lock(state.mu);
    // Replicas differ by a number far from those that count runs.
    const uint64_t replica = state.is_set && state.identical_replicas ? 0 : static_cast<uint64_t>(replica_) << 32;
    if (state.is_set) return Mix(Mix(state.seed) + replica + state.runs[replica_]++);
    if (explicit_seed_ != 0) return Mix(Mix(static_cast<uint64_t>(explicit_seed_)) + replica + runs_++);
    return Entropy();
  }

  int64_t ordinal_ = 0, explicit_seed_ = 0, replica_ = 0;
  std::atomic<uint64_t> runs_{0};
};

REGISTER_KERNEL_BUILDER(Name("IpuRandomSeed").Device("CPU"), IpuRandomSeedOp);

}  // namespace

void SetSeed(int device_ordinal, uint64_t seed, bool identical_replicas) {
  SeedState& state = SeedOf(device_ordinal);
  mutex_lock lock(state.mu);
  state.is_set = true;
  state.identical_replicas = identical_replicas;
  state.seed = seed;
  std::fill(std::begin(state.runs), std::end(state.runs), 0);
  state.roundings.clear();
}

uint64_t DrawRoundingSeed(int device_ordinal, int chip, uint64_t op, bool every_chip) {
  SeedState& state = SeedOf(device_ordinal);
  mutex_lock lock(state.mu);
  if (!state.is_set && state.unset_seed == 0) state.unset_seed = Entropy() | 1;
  const uint64_t on_chip = Mix(op + static_cast<uint64_t>(chip));
  const uint64_t own = every_chip || (state.is_set && state.identical_replicas) ? op : on_chip;
  return Mix(Mix(Mix(state.is_set ? state.seed : state.unset_seed) + own) + state.roundings[on_chip]++);
}

}  // namespace tf_ipu_shim

extern "C" void ipu_set_seed(int32_t device, int64_t seed, int32_t identical_replicas) {
  if (!tf_ipu_shim::IsValidChip(device)) return;
  tf_ipu_shim::SetSeed(device, static_cast<uint64_t>(seed), identical_replicas != 0);
}
