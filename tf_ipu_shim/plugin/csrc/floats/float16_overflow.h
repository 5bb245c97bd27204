// float16 results that overflow: an IPU gives the largest number, 65504, where IEEE 754 has infinity, and NaN for a
// division by zero. XLA programs have ops for it (`compiler/xla_semantics/float16_overflow`); this is what kernels do.
#pragma once

#include <memory>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// Whether results of an op, or variables that it updates, are float16 and may overflow.
bool MayOverflow(const tensorflow::OpKernel& kernel);

// A kernel that runs another one of the same op, and clips what it gives on an IPU device where nothing is checked:
// `FloatWatch` looks at results before they are clipped.
tensorflow::OpKernel* Saturating(tensorflow::OpKernelConstruction* construction,
                                 std::unique_ptr<tensorflow::OpKernel> kernel, int ordinal);

// What an op divides by; an uninitialised tensor for one that does not. Holding it keeps a kernel from writing its
// result there.
tensorflow::Tensor DivisorOf(tensorflow::OpKernelContext* context);

// Clips float16 results of an op on a device, and variables that it updated; nothing on an IPU model.
tensorflow::Status Saturate(tensorflow::OpKernelContext* context, const tensorflow::Tensor& divisor, int ordinal);

}  // namespace tf_ipu_shim
