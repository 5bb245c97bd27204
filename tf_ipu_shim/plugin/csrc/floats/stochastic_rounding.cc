// Rounds float16 results of kernels stochastically.
#include "floats/stochastic_rounding.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "device/device.h"
#include "floats/float16_overflow.h"
#include "kernels/changed_node.h"
#include "kernels/one_dnn.h"
#include "floats/random_seed.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "floats/updated_variables.h"
#include "floats/float16_via_float32.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file stands between TensorFlow's kernels

// The attributes that the lowering and a script's `scopes.stochastic_rounding` set on an op. The first is the same as
// in `compiler/ir/vocabulary.py`.
constexpr char kRoundingAttr[] = "_ipu_rounding", kFrontendAttr[] = "_XlaFrontendAttributes";
// Entries of the map in a serialised `xla.FrontendAttributes`.
constexpr char kScopedOn[] = "\x0a\x13STOCHASTIC_ROUNDING\x12\x0dTHREESTATE_ON";
constexpr char kScopedOff[] = "\x0a\x13STOCHASTIC_ROUNDING\x12\x0eTHREESTATE_OFF";

// Ops that compute and cannot overflow; the same as in `compiler/kernels/stochastic_rounding.py`.
bool CannotOverflow(const std::string& op) {
  static const auto* const ops = new std::set<std::string>{
      "Acos", "Acosh",    "Asin", "Asinh",   "Atan",     "Atan2",    "Cos",  "Elu", "Erf",
      "Erfc", "Sigmoid",  "Sin",  "Softmax", "Softplus", "Softsign", "Sqrt", "Tanh"};
  return ops->count(op) > 0;
}

uint64_t HashOf(const char* bytes, size_t size, uint64_t hash) {
  size_t at = 0;
  for (uint64_t eight; at + sizeof(eight) <= size; at += sizeof(eight)) {
    std::memcpy(&eight, bytes + at, sizeof(eight));
    hash = Mix(hash ^ eight);
  }
  uint64_t last = 0;
  std::memcpy(&last, bytes + at, size - at);
  return Mix(hash ^ last ^ (static_cast<uint64_t>(size) << 48));
}

uint64_t HashOf(const Tensor& tensor, uint64_t hash) {
  if (!tensor.IsInitialized() || !DataTypeCanUseMemcpy(tensor.dtype())) return hash;
  const auto bytes = tensor.tensor_data();
  return HashOf(bytes.data(), bytes.size(), hash);
}

// float32 to float16, up or down by the bits of a random number.
uint16_t RoundedHalf(float value, uint64_t random) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint16_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;   // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520, which is rounded to infinity, and more
  if (magnitude >= 0x477fe000) return sign | 0x7bff;  // 65504, the largest number, and more
  if (magnitude >= 0x38800000) {                      // 2^-14: the last 13 digits are cut off
    const uint32_t rounded = magnitude + (static_cast<uint32_t>(random) & 0x1fff);
    return sign | static_cast<uint16_t>((rounded >> 13) - (112 << 10));
  }
  const int exponent = static_cast<int>(magnitude >> 23);
  const int cut = 126 - exponent;  // digits, of 24: a denormal half counts in 2^-24
  if (exponent == 0 || cut > 63) return sign;  // less than 2^-64: it would be rounded up once in 2^40 times
  const uint64_t digits = (magnitude & 0x7fffff) | 0x800000;
  return sign | static_cast<uint16_t>((digits + (random & ((uint64_t{1} << cut) - 1))) >> cut);
}

class RoundingKernel : public OpKernel {
 public:
  RoundingKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> nearest, int ordinal)
      : OpKernel(construction),
        nearest_(std::move(nearest)),
        rounding_(def(), ordinal),
        device_(AsIpuDevice(construction->device())->Chip(0)),
        allocator_(construction->device()->GetAllocator(AllocatorAttributes())),
        library_(construction->function_library()),
        resources_(construction->resource_manager()),
        version_(construction->graph_def_version()) {}

  void Compute(OpKernelContext* context) override {
    if (!rounding_.IsStochastic()) return nearest_->Compute(context);
    OpKernel* float32_kernel = nullptr;
    OP_REQUIRES_OK(context, Float32Kernel(&float32_kernel));
    ComputeInFloat32(context, float32_kernel, rounding_);
  }
  bool IsExpensive() override { return nearest_->IsExpensive(); }

 private:
  // Made when it is needed first: most programs never round so.
  Status Float32Kernel(OpKernel** kernel) {
    mutex_lock lock(mutex_);
    if (float32_kernel_ == nullptr) {
      std::shared_ptr<const NodeProperties> properties;
      TF_RETURN_IF_ERROR(PropertiesOf(WithFloat32Attributes(WithoutOneDnnPrefix(def())), &properties));
      OpKernel* made = nullptr;
      TF_RETURN_IF_ERROR(
          CreateOpKernel(DeviceType("CPU"), device_, allocator_, library_, resources_, properties, version_, &made));
      float32_kernel_.reset(made);
    }
    *kernel = float32_kernel_.get();
    return OkStatus();
  }

  const std::unique_ptr<OpKernel> nearest_;
  const OpRounding rounding_;
  DeviceBase* const device_;
  Allocator* const allocator_;
  FunctionLibraryRuntime* const library_;
  ResourceMgr* const resources_;
  const int version_;
  mutex mutex_;
  std::unique_ptr<OpKernel> float32_kernel_;
};

}  // namespace

std::atomic<uint8_t> roundings[kMaxDevices] = {};

bool RoundsToFloat16(const OpKernel& kernel) {
  if (MayOverflow(kernel)) return true;
  for (int i = 0; i < kernel.num_outputs(); ++i) {
    if (kernel.output_type(i) == DT_HALF) {
      return CannotOverflow(WithoutOneDnnPrefix(absl::string_view(kernel.def().op())));
    }
  }
  return false;
}

OpRounding::OpRounding(const NodeDef& node, int ordinal)
    : ordinal_(ordinal), op_(HashOf(node.name().data(), node.name().size(), 0)) {
  const auto& attributes = node.attr();
  const auto chip = attributes.find(kChipAttr);
  if (chip != attributes.end()) chip_ = static_cast<int>(chip->second.i());
  const auto set = attributes.find(kRoundingAttr), scoped = attributes.find(kFrontendAttr);
  if (set != attributes.end()) {
    mark_ = set->second.b() ? Mark::kOn : Mark::kOff;
  } else if (scoped != attributes.end()) {
    const std::string& entries = scoped->second.s();
    if (entries.find(kScopedOn) != std::string::npos) mark_ = Mark::kOn;
    if (entries.find(kScopedOff) != std::string::npos) mark_ = Mark::kOff;
  }
}

uint64_t OpRounding::Draw(OpKernelContext* context) const {
  const bool same_for_same = (roundings[ordinal_].load(std::memory_order_relaxed) & kSameForSame) != 0;
  uint64_t seed = DrawRoundingSeed(ordinal_, chip_, op_, same_for_same);
  if (!same_for_same) return seed;
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (context->has_input(i) && !IsRefType(context->input_dtype(i))) seed = HashOf(context->input(i), seed);
  }
  return seed;
}

void RoundStochastically(const Tensor& from, uint64_t seed, Tensor* to) {
  const float* const values = static_cast<const float*>(from.data());
  uint16_t* const halves = static_cast<uint16_t*>(to->data());
  const int64_t count = from.NumElements();
  for (int64_t i = 0; i < count; ++i) halves[i] = RoundedHalf(values[i], Mix(seed + static_cast<uint64_t>(i)));
}

OpKernel* MakeRoundingKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> nearest, int ordinal) {
  return new RoundingKernel(construction, std::move(nearest), ordinal);
}

}  // namespace tf_ipu_shim

// Bits of `MakeRoundingKernel` for a device.
extern "C" void ipu_set_rounding(int32_t device, int32_t rounding) {
  if (tf_ipu_shim::IsValidChip(device)) tf_ipu_shim::roundings[device] = static_cast<uint8_t>(rounding);
}
