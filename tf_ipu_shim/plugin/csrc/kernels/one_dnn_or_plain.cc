// Chooses at run time between a oneDNN kernel and TensorFlow's own.
#include "kernels/one_dnn_or_plain.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file stands between TensorFlow's kernels

constexpr char kMaxPoolGrad[] = "_MklNativeMaxPoolGrad";

// The number of windows along an axis.
int64_t Windows(int64_t size, int64_t window, int64_t stride, bool is_valid) {
  const int64_t places = is_valid ? size - window + 1 : size;
  return places <= 0 ? 0 : (places + stride - 1) / stride;
}

// The gradient of max-pooling reads a gradient and the position of a maximum for each window.
class PoolShapes {
 public:
  Status Read(OpKernelConstruction* construction) {
    std::string padding;
    TF_RETURN_IF_ERROR(construction->GetAttr("ksize", &window_));
    TF_RETURN_IF_ERROR(construction->GetAttr("strides", &strides_));
    TF_RETURN_IF_ERROR(construction->GetAttr("padding", &padding));
    is_valid_ = padding == "VALID";
    return OkStatus();
  }

  bool ShapesMatch(const Tensor& pooled, const Tensor& result, const Tensor& gradients, const Tensor& maxima) const {
    if (pooled.dims() != 4 || result.dims() != 4 || window_.size() != 4 || strides_.size() != 4) return false;
    for (int axis = 0; axis < 4; ++axis) {
      const int64_t windows = Windows(pooled.dim_size(axis), window_[axis], strides_[axis], is_valid_);
      if (result.dim_size(axis) != windows) return false;
    }
    return result.shape() == gradients.shape() && maxima.NumElements() >= gradients.NumElements();
  }

 private:
  std::vector<int32> window_, strides_;
  bool is_valid_ = false;
};

class OneDnnOrPlainKernel : public OpKernel {
 public:
  OneDnnOrPlainKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> one_dnn,
                      std::unique_ptr<OpKernel> plain)
      : OpKernel(construction), one_dnn_(std::move(one_dnn)), plain_(std::move(plain)) {
    if (def().op() == kMaxPoolGrad) OP_REQUIRES_OK(construction, shapes_.Read(construction));
  }

  void Compute(OpKernelContext* context) override { (CanUseOneDnn(context) ? one_dnn_ : plain_)->Compute(context); }
  bool IsExpensive() override { return true; }

 private:
  bool CanUseOneDnn(OpKernelContext* context) const {
    if (context->input(0).NumElements() == 0) return false;
    return def().op() != kMaxPoolGrad ||
           shapes_.ShapesMatch(context->input(0), context->input(1), context->input(2), context->input(3));
  }

  const std::unique_ptr<OpKernel> one_dnn_;
  const std::unique_ptr<OpKernel> plain_;
  PoolShapes shapes_;
};

}  // namespace

bool NeedsPlainKernel(const NodeDef& node) {
  // Convolutions give an empty tensor the shape of their input.
  static const auto* ops = new std::set<std::string>{
      kMaxPoolGrad,
      "_MklNativeFusedBatchNorm",
      "_MklNativeFusedBatchNormV2",
      "_MklNativeFusedBatchNormV3",
      "_MklNativeFusedBatchNormGrad",
      "_MklNativeFusedBatchNormGradV2",
      "_MklNativeFusedBatchNormGradV3",
      "_MklNativeConv2D",
      "_MklNativeFusedConv2D",
      "_MklNativeConv3D",
      "_MklNativeDepthwiseConv2dNative"};
  return ops->count(node.op()) > 0;
}

OpKernel* MakeOneDnnOrPlainKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> one_dnn,
                                  std::unique_ptr<OpKernel> plain) {
  return new OneDnnOrPlainKernel(construction, std::move(one_dnn), std::move(plain));
}

}  // namespace tf_ipu_shim
