// Runs ops on float16 and bfloat16 by float32 kernels, with conversions before and after.
#pragma once

#include "floats/stochastic_rounding.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

inline bool Is16BitFloatType(tensorflow::DataType type) {
  return type == tensorflow::DT_HALF || type == tensorflow::DT_BFLOAT16;
}

// Returns the node with float32 for 16-bit floats in all attributes.
tensorflow::NodeDef WithFloat32Attributes(tensorflow::NodeDef node);

// Runs a float32 kernel on 16-bit operands and copies of variables, and converts its results back; float16 results are
// rounded by `rounding`.
void ComputeInFloat32(tensorflow::OpKernelContext* context, tensorflow::OpKernel* float32_kernel,
                      const OpRounding& rounding);

}  // namespace tf_ipu_shim
