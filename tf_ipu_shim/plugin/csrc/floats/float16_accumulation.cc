// Runs float16 matmuls, convolutions and reductions by TensorFlow's float32 kernels.
//
// TensorFlow's kernels accumulate float16 in float16. A mean is infinite if the sum of its elements is out of range,
// and a sum of thousands of elements loses digits. Their float16 matmuls and convolutions also use no optimized
// library: float32 kernels with casts need a hundredth of the time.
#include "floats/float16_accumulation.h"

#include <set>
#include <string>
#include <utility>

#include "floats/float16_via_float32.h"
#include "kernels/convolutions.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file stands between TensorFlow's kernels

const std::set<std::string>& AccumulatingOps() {
  static const auto* ops = new std::set<std::string>(
      WithConvolutions({"BatchMatMul", "BatchMatMulV2", "BiasAddGrad", "Einsum", "MatMul", "Mean", "Prod",
                        "ResizeNearestNeighborGrad", "Sum"}));
  return *ops;
}

class Float32ComputeKernel : public OpKernel {
 public:
  Float32ComputeKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> float32_kernel, int ordinal)
      : OpKernel(construction), float32_kernel_(std::move(float32_kernel)), rounding_(def(), ordinal) {}

  void Compute(OpKernelContext* context) override { ComputeInFloat32(context, float32_kernel_.get(), rounding_); }
  bool IsExpensive() override { return float32_kernel_->IsExpensive(); }

 private:
  const std::unique_ptr<OpKernel> float32_kernel_;
  const OpRounding rounding_;
};

}  // namespace

bool AccumulatesFloat16(const NodeDef& node) {
  if (!AccumulatingOps().count(node.op())) return false;
  const auto type = node.attr().find("T");
  return type != node.attr().end() && Is16BitFloatType(type->second.type());
}

OpKernel* MakeFloat32ComputeKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> float32_kernel,
                                   int ordinal) {
  return new Float32ComputeKernel(construction, std::move(float32_kernel), ordinal);
}

}  // namespace tf_ipu_shim
