// Divisions by zero, told from an op's operands: a finite number other than 0 divided by 0, and what mathematics counts
// the same (IEEE 754, section 7.3): the poles of logarithms and negative powers.
#pragma once

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// How many elements of an op's result are one.
int64_t CountPoles(tensorflow::OpKernelContext* context);

}  // namespace tf_ipu_shim
