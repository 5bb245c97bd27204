// Saturation of float16 results: an IPU returns the largest number, 65504, where IEEE 754 has infinity, and NaN for a
// division by zero. XLA programs have ops for it (`compiler/xla_semantics/float16_overflow`); kernels are wrapped here.
#pragma once

#include <memory>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// Whether results of an op, or variables that it updates, are float16 and may overflow.
bool MayOverflow(const tensorflow::OpKernel& kernel);

// Returns a kernel that runs `kernel` and clips its results on an IPU device without floating-point checks:
// `FloatChecker` must see results before they are clipped.
tensorflow::OpKernel* MakeSaturatingKernel(tensorflow::OpKernelConstruction* construction,
                                           std::unique_ptr<tensorflow::OpKernel> kernel, int ordinal);

// The divisor of an op, or an uninitialized tensor. Holding it keeps the kernel from writing its result there.
tensorflow::Tensor DivisorOf(tensorflow::OpKernelContext* context);

// Clips float16 results of an op on a device, and variables that it updated; nothing on an IPU model.
tensorflow::Status Saturate(tensorflow::OpKernelContext* context, const tensorflow::Tensor& divisor, int ordinal);

// Clips a float16 sum in its own memory; nothing on an IPU model, nor where overflows are to be NaN.
void ClipSum(tensorflow::Tensor* sum, int ordinal);

}  // namespace tf_ipu_shim
