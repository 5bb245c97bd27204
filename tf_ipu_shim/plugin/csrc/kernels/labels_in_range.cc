// `IpuLabelsInRange`: clamps out-of-range labels before a cross-entropy kernel, which would refuse them, and makes
// their rows NaN (see `compiler/kernels/out_of_bounds`). Other values pass unchanged.
#include <algorithm>
#include <limits>

#include "device/device.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

REGISTER_OP("IpuLabelsInRange")
    .Input("features: T")
    .Input("labels: Tlabels")
    .Output("features_in_range: T")
    .Output("labels_in_range: Tlabels")
    .Attr("T: {half, bfloat16, float, double}")
    .Attr("Tlabels: {int32, int64}")
    .SetShapeFn([](shape_inference::InferenceContext* context) {
      context->set_output(0, context->input(0));
      context->set_output(1, context->input(1));
      return OkStatus();
    });

template <typename T, typename Label>
class LabelsInRangeOp : public OpKernel {
 public:
  explicit LabelsInRangeOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& features = context->input(0);
    const Tensor& labels = context->input(1);
    // For other shapes, the next op reports the error.
    const bool fit = features.dims() == 2 && labels.dims() == 1 && features.dim_size(0) == labels.dim_size(0);
    if (!fit || features.NumElements() == 0 || AllInRange(labels, features.dim_size(1))) {
      context->set_output(0, features);
      context->set_output(1, labels);
      return;
    }
    Tensor* rows = nullptr;
    Tensor* nearest = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, features.shape(), &rows));
    OP_REQUIRES_OK(context, context->allocate_output(1, labels.shape(), &nearest));
    const int64_t classes = features.dim_size(1);
    const Label* const label = static_cast<const Label*>(labels.data());
    const T* const from = static_cast<const T*>(features.data());
    T* const to = static_cast<T*>(rows->data());
    for (int64_t row = 0; row < features.dim_size(0); ++row) {
      const Label there = std::clamp<int64_t>(label[row], 0, classes - 1);
      static_cast<Label*>(nearest->data())[row] = there;
      if (there == label[row]) {
        std::copy_n(from + row * classes, classes, to + row * classes);
      } else {
        std::fill_n(to + row * classes, classes, std::numeric_limits<T>::quiet_NaN());
      }
    }
  }
  bool IsExpensive() override { return false; }

 private:
  static bool AllInRange(const Tensor& labels, int64_t classes) {
    const Label* const label = static_cast<const Label*>(labels.data());
    return std::all_of(label, label + labels.NumElements(),
                       [classes](Label one) { return one >= 0 && static_cast<int64_t>(one) < classes; });
  }
};

#define REGISTER_LABELS(T, Label)                              \
  REGISTER_KERNEL_BUILDER(Name("IpuLabelsInRange")             \
                              .Device(kDeviceType)             \
                              .TypeConstraint<T>("T")          \
                              .TypeConstraint<Label>("Tlabels"), \
                          LabelsInRangeOp<T, Label>)
#define REGISTER_FEATURES(T)  \
  REGISTER_LABELS(T, int32);  \
  REGISTER_LABELS(T, int64_t)
REGISTER_FEATURES(Eigen::half);
REGISTER_FEATURES(bfloat16);
REGISTER_FEATURES(float);
REGISTER_FEATURES(double);
#undef REGISTER_FEATURES
#undef REGISTER_LABELS

}  // namespace
}  // namespace tf_ipu_shim
