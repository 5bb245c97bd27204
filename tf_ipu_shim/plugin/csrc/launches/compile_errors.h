// Replaces XLA's compile errors by messages with the script's line and a fix, which Python knows.
#pragma once

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Replaces the error of a program that XLA could not compile by the message for the script.
void ExplainCompileError(tensorflow::OpKernelContext* context);

}  // namespace tf_ipu_shim
