// Finds NaN and infinities in tensors of any floating-point type.
#pragma once

#include <cstdint>

#include "tensorflow/core/framework/tensor.h"

namespace tf_ipu_shim {

bool IsFloat(tensorflow::DataType type);

struct SpecialValues {
  bool nan = false;
  int64_t infinite = 0;
};

// Adds the kinds of values in a floating-point tensor; ignores other types.
void CountSpecialValues(const tensorflow::Tensor& tensor, SpecialValues* found);

// One element of such a tensor.
double ValueAt(const tensorflow::Tensor& tensor, int64_t index);

// Replaces infinities of a float16 tensor by NaN.
void SetInfinitiesToNan(tensorflow::Tensor* tensor);

}  // namespace tf_ipu_shim
