// Selects ops that accumulate float16 or bfloat16, and computes them in float32, as IPUs and XLA do.
#pragma once

#include <memory>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Whether an op accumulates or multiplies 16-bit floats.
bool AccumulatesFloat16(const tensorflow::NodeDef& node);

// Returns a kernel that runs the float32 kernel of the op and rounds its results to 16-bit floats as that device does.
tensorflow::OpKernel* MakeFloat32ComputeKernel(tensorflow::OpKernelConstruction* construction,
                                               std::unique_ptr<tensorflow::OpKernel> float32_kernel, int ordinal);

}  // namespace tf_ipu_shim
