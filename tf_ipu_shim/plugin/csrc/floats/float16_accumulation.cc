// TensorFlow's kernels add halves up as halves: a mean is infinite where the sum of its elements is out of range, and a
// sum of thousands of elements loses digits. For matrix products and convolutions they have no library either: those of
// float32, with casts around them, take a hundredth of the time.
#include "floats/float16_accumulation.h"

#include <set>
#include <string>
#include <utility>

#include "floats/float16_via_float32.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file stands between TensorFlow's kernels

constexpr char kType[] = "T";

const std::set<std::string>& Sums() {
  static const auto* ops = new std::set<std::string>{"BatchMatMul",
                                                     "BatchMatMulV2",
                                                     "BiasAddGrad",
                                                     "Conv2D",
                                                     "Conv2DBackpropFilter",
                                                     "Conv2DBackpropInput",
                                                     "Conv3D",
                                                     "Conv3DBackpropFilterV2",
                                                     "Conv3DBackpropInputV2",
                                                     "DepthwiseConv2dNative",
                                                     "DepthwiseConv2dNativeBackpropFilter",
                                                     "DepthwiseConv2dNativeBackpropInput",
                                                     "Einsum",
                                                     "MatMul",
                                                     "Mean",
                                                     "Prod",
                                                     "ResizeNearestNeighborGrad",
                                                     "Sum"};
  return *ops;
}

bool IsNarrow(DataType type) { return type == DT_HALF || type == DT_BFLOAT16; }

class HalvesByFloatsKernel : public OpKernel {
 public:
  HalvesByFloatsKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> of_floats, int ordinal)
      : OpKernel(construction), of_floats_(std::move(of_floats)), rounding_(def(), ordinal) {}

  void Compute(OpKernelContext* context) override { ComputeByFloats(context, of_floats_.get(), rounding_); }
  bool IsExpensive() override { return of_floats_->IsExpensive(); }

 private:
  const std::unique_ptr<OpKernel> of_floats_;
  const OpRounding rounding_;
};

}  // namespace

bool AddsUpHalves(const NodeDef& node) {
  if (!Sums().count(node.op())) return false;
  const auto type = node.attr().find(kType);
  return type != node.attr().end() && IsNarrow(type->second.type());
}

NodeDef OfFloats(NodeDef node) {
  (*node.mutable_attr())[kType].set_type(DT_FLOAT);
  return node;
}

OpKernel* HalvesByFloats(OpKernelConstruction* construction, std::unique_ptr<OpKernel> of_floats, int ordinal) {
  return new HalvesByFloatsKernel(construction, std::move(of_floats), ordinal);
}

}  // namespace tf_ipu_shim
