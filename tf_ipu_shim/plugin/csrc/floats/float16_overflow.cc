// Clips overflowed float16 results of kernels to 65504, as IPUs do.
#include "floats/float16_overflow.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "device/arena.h"
#include "floats/broadcast_pairs.h"
#include "floats/float_checks.h"
#include "kernels/one_dnn.h"
#include "floats/updated_variables.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file stands between TensorFlow's kernels

// For each device, whether it is an IPU Model, which computes on the host: float16 results that overflow are infinite
// there.
std::atomic<bool> keeps_infinities[kMaxDevices] = {};

constexpr uint16_t kHalfSign = 0x8000, kHalfInfinity = 0x7c00, kLargestHalf = 0x7bff, kHalfNan = 0x7e00;

// The same as in `compiler/xla_semantics/float16_overflow.py`.
bool IsOverflowing(const std::string& op) {
  static const auto* const ops = new std::set<std::string>{
      "AccumulateNV2", "Add", "AddN", "AddV2", "Atanh", "AvgPool", "AvgPool3D", "AvgPool3DGrad", "AvgPoolGrad",
      "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "BesselI0", "BesselI1", "BesselK0", "BesselK1", "BesselY0",
      "BesselY1", "BiasAdd", "BiasAddGrad", "BiasAddV1", "Cast", "Conv2D", "Conv2DBackpropFilter",
      "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2", "Cosh", "Cross",
      "Cumprod", "Cumsum", "CumulativeLogsumexp", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
      "DepthwiseConv2dNativeBackpropInput", "Digamma", "Dilation2D", "Dilation2DBackpropFilter",
      "Dilation2DBackpropInput", "Div", "DivNoNan", "Einsum", "EluGrad", "Erfinv", "EuclideanNorm", "Exp", "Expm1",
      "FloorDiv", "FusedBatchNorm", "FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3",
      "FusedBatchNormV2", "FusedBatchNormV3", "InplaceAdd", "InplaceSub", "Inv", "InvGrad", "L2Loss", "LRN",
      "LRNGrad", "LeakyRelu", "LeakyReluGrad", "Lgamma", "Log", "Log1p", "LogSoftmax", "MatMul", "MatrixInverse",
      "MaxPool3DGrad", "MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradWithArgmax", "Mean", "MirrorPadGrad", "Mul",
      "MulNoNan", "Pow", "Prod", "RealDiv", "Reciprocal", "ReciprocalGrad", "ResizeBilinearGrad",
      "ResizeNearestNeighborGrad", "Rsqrt", "RsqrtGrad", "ScatterNd", "ScatterNdNonAliasingAdd", "SegmentProd",
      "SegmentSum", "Selu", "SeluGrad", "SigmoidGrad", "Sinh", "SoftmaxCrossEntropyWithLogits", "SoftplusGrad",
      "SoftsignGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtN", "SparseSegmentSqrtNGrad",
      "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSum", "SparseSegmentSumGrad",
      "SparseSegmentSumWithNumSegments", "SparseSoftmaxCrossEntropyWithLogits", "SparseTensorDenseMatMul",
      "SqrtGrad", "Square", "SquaredDifference", "Sub", "Sum", "Tan", "TanhGrad", "TensorScatterAdd",
      "TensorScatterSub", "TruncateDiv", "UnsortedSegmentProd", "UnsortedSegmentSum", "Xdivy", "Xlog1py", "Xlogy",
      "_FusedBatchNormEx", "_FusedConv2D", "_FusedDepthwiseConv2dNative", "_FusedMatMul"};
  return ops->count(op) > 0;
}

// The operand that an op divides by; -1 for one that does not. The same as in `compiler/xla_semantics/float16_overflow.py`.
int DivisorIndex(const std::string& op) {
  static const auto* const divisors = new std::map<std::string, int>{
      {"Div", 1}, {"FloorDiv", 1}, {"Inv", 0}, {"RealDiv", 1}, {"Reciprocal", 0}, {"Rsqrt", 0}, {"Xdivy", 1}};
  const auto found = divisors->find(op);
  return found == divisors->end() ? -1 : found->second;
}

bool IsZeroFloat16(uint16_t value) { return (value & ~kHalfSign) == 0; }
bool IsInfiniteFloat16(uint16_t value) { return (value & ~kHalfSign) == kHalfInfinity; }

// Whether a float16 tensor may contain infinities or NaN. Reads four elements at once, because it checks every result.
bool HasSpecialFloat16(const Tensor& tensor) {
  constexpr uint64_t kExponents = 0x7c007c007c007c00, kOne = 0x0400040004000400, kCarries = 0x8000800080008000;
  const char* const bytes = static_cast<const char*>(tensor.data());
  const int64_t size = tensor.NumElements() * sizeof(uint16_t);
  uint64_t found = 0;
  int64_t at = 0;
  for (uint64_t four; at + static_cast<int64_t>(sizeof(four)) <= size; at += sizeof(four)) {
    std::memcpy(&four, bytes + at, sizeof(four));
    found |= (four & kExponents) + kOne;
  }
  uint64_t last = 0;
  std::memcpy(&last, bytes + at, size - at);
  return ((found | ((last & kExponents) + kOne)) & kCarries) != 0;
}

bool HasInfinities(const Tensor& tensor) {
  if (tensor.dtype() != DT_HALF || !tensor.IsInitialized() || !HasSpecialFloat16(tensor)) return false;
  const uint16_t* const values = static_cast<const uint16_t*>(tensor.data());
  return std::any_of(values, values + tensor.NumElements(), IsInfiniteFloat16);
}

void SetDividedByZeroToNan(Tensor* result, const Tensor& divisor) {
  uint16_t* const values = static_cast<uint16_t*>(result->data());
  const uint16_t* const divisors = static_cast<const uint16_t*>(divisor.data());
  ForEachBroadcastPair(result->shape(), divisor.shape(), [&](int64_t i, int64_t, int64_t by) {
    if (IsInfiniteFloat16(values[i]) && IsZeroFloat16(divisors[by])) values[i] = kHalfNan;
  });
}

void ClipFloat16(Tensor* tensor) {
  uint16_t* const values = static_cast<uint16_t*>(tensor->data());
  const int64_t count = tensor->NumElements();
  for (int64_t i = 0; i < count; ++i) {
    if (IsInfiniteFloat16(values[i])) values[i] = (values[i] & kHalfSign) | kLargestHalf;
  }
}

// A result may be in an operand's buffer, which others read too.
Status DetachFromOperands(OpKernelContext* context, Tensor* result) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (!context->has_input(i) || context->input_dtype(i) != DT_HALF) continue;
    if (!context->input(i).SharesBufferWith(*result)) continue;
    Tensor own;
    TF_RETURN_IF_ERROR(context->allocate_temp(DT_HALF, result->shape(), &own));
    std::copy_n(static_cast<const uint16_t*>(result->data()), result->NumElements(), static_cast<uint16_t*>(own.data()));
    *result = own;
    return OkStatus();
  }
  return OkStatus();
}

class SaturatingKernel : public OpKernel {
 public:
  SaturatingKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> kernel, int ordinal)
      : OpKernel(construction), kernel_(std::move(kernel)), ordinal_(ordinal), divides_(DivisorIndex(def().op()) >= 0) {}

  void Compute(OpKernelContext* context) override {
    if (FloatChecksOf(ordinal_) != 0) return kernel_->Compute(context);
    const Tensor divisor = divides_ ? DivisorOf(context) : Tensor();
    kernel_->Compute(context);
    if (context->status().ok()) OP_REQUIRES_OK(context, Saturate(context, divisor, ordinal_));
  }
  bool IsExpensive() override { return kernel_->IsExpensive(); }

 private:
  const std::unique_ptr<OpKernel> kernel_;
  const int ordinal_;
  const bool divides_;
};

}  // namespace

bool MayOverflow(const OpKernel& kernel) {
  const NodeDef& node = kernel.def();
  if (UpdatesVariables(node.op())) {
    for (const char* name : {"T", "dtype"}) {
      const auto type = node.attr().find(name);
      if (type != node.attr().end() && type->second.type() == DT_HALF) return true;
    }
    return false;
  }
  for (int i = 0; i < kernel.num_outputs(); ++i) {
    if (kernel.output_type(i) == DT_HALF) return IsOverflowing(WithoutOneDnnPrefix(absl::string_view(node.op())));
  }
  return false;
}

OpKernel* MakeSaturatingKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> kernel, int ordinal) {
  return new SaturatingKernel(construction, std::move(kernel), ordinal);
}

Tensor DivisorOf(OpKernelContext* context) {
  const int index = DivisorIndex(context->op_kernel().def().op());
  return index < 0 || index >= context->num_inputs() ? Tensor() : context->input(index);
}

Status Saturate(OpKernelContext* context, const Tensor& divisor, int ordinal) {
  if (keeps_infinities[ordinal].load(std::memory_order_relaxed)) return OkStatus();
  for (int i = 0; i < context->num_outputs(); ++i) {
    Tensor* const result = context->mutable_output(i);
    if (result == nullptr || !HasInfinities(*result)) continue;
    TF_RETURN_IF_ERROR(DetachFromOperands(context, result));
    if (divisor.dtype() == DT_HALF) SetDividedByZeroToNan(result, divisor);
    ClipFloat16(result);
  }
  ForEachUpdatedVariable(context, [](Tensor* variable) {
    if (HasInfinities(*variable)) ClipFloat16(variable);
  });
  return OkStatus();
}

void ClipSum(Tensor* sum, int ordinal) {
  if (keeps_infinities[ordinal].load(std::memory_order_relaxed) || FloatChecksOf(ordinal) & kNanOnOverflow) return;
  if (HasInfinities(*sum)) ClipFloat16(sum);
}

}  // namespace tf_ipu_shim

extern "C" void ipu_keep_infinities(int32_t device, int32_t keeps) {
  if (tf_ipu_shim::IsValidChip(device)) tf_ipu_shim::keeps_infinities[device] = keeps != 0;
}
