// Ops of 16-bit floats by the kernels of float32, with conversions around them.
#pragma once

#include "floats/stochastic_rounding.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// The same op with float32 for float16, wherever its attributes say so.
tensorflow::NodeDef WithFloats(tensorflow::NodeDef node);

// Runs the kernel of float32 on operands, and on copies of variables, that are 16-bit floats, and converts what it
// gives: float16 as `rounding` says.
void ComputeByFloats(tensorflow::OpKernelContext* context, tensorflow::OpKernel* of_floats, const OpRounding& rounding);

}  // namespace tf_ipu_shim
