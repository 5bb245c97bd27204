// Detects divisions by zero from an op's operands, including the poles of logarithms and negative powers (IEEE 754,
// section 7.3).
#pragma once

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// The number of result elements that divide by zero.
int64_t CountPoles(tensorflow::OpKernelContext* context);

}  // namespace tf_ipu_shim
