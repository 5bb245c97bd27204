// TensorFlow's kernels add halves up as halves: a mean is infinite where the sum of its elements is out of range, and a
// sum of thousands of elements loses digits. For matrix products and convolutions they have no library either: those of
// float32, with casts around them, take a hundredth of the time.
#include "half_sums.h"

#include <set>
#include <string>
#include <utility>
#include <vector>


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
                                                     "Sum"};
  return *ops;
}

bool IsNarrow(DataType type) { return type == DT_HALF || type == DT_BFLOAT16; }

template <typename From, typename To>
void Convert(const Tensor& from, Tensor* to) {
  to->flat<To>() = from.flat<From>().template cast<To>();
}

class HalvesByFloatsKernel : public OpKernel {
 public:
  HalvesByFloatsKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> of_floats)
      : OpKernel(construction), of_floats_(std::move(of_floats)) {}

  void Compute(OpKernelContext* context) override {
    std::vector<Tensor> wide(context->num_inputs());
    std::vector<TensorValue> inputs;
    for (int i = 0; i < context->num_inputs(); ++i) {
      inputs.push_back(context->params()->inputs[i]);
      if (!IsNarrow(context->input_dtype(i))) continue;
      const Tensor& narrow = context->input(i);
      OP_REQUIRES_OK(context, context->allocate_temp(DT_FLOAT, narrow.shape(), &wide[i]));
      if (narrow.dtype() == DT_HALF) {
        Convert<Eigen::half, float>(narrow, &wide[i]);
      } else {
        Convert<bfloat16, float>(narrow, &wide[i]);
      }
      inputs.back() = TensorValue(&wide[i]);
    }
    OpKernelContext::Params params = *context->params();
    params.eigen_gpu_device = nullptr;  // which the other one deletes
    params.op_kernel = of_floats_.get();
    params.inputs = inputs;
    params.forward_from_array = nullptr;  // of this op's buffers
    OpKernelContext inner(&params, context->num_outputs());
    of_floats_->Compute(&inner);
    OP_REQUIRES_OK(context, inner.status());
    for (int i = 0; i < context->num_outputs(); ++i) {
      const Tensor* found = inner.mutable_output(i);
      Tensor* narrow = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(i, found->shape(), &narrow));
      if (narrow->dtype() == DT_HALF) {
        Convert<float, Eigen::half>(*found, narrow);
      } else {
        Convert<float, bfloat16>(*found, narrow);
      }
    }
  }
  bool IsExpensive() override { return of_floats_->IsExpensive(); }

 private:
  const std::unique_ptr<OpKernel> of_floats_;
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

OpKernel* HalvesByFloats(OpKernelConstruction* construction, std::unique_ptr<OpKernel> of_floats) {
  return new HalvesByFloatsKernel(construction, std::move(of_floats));
}

}  // namespace tf_ipu_shim
