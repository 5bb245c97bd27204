// Guards oneDNN kernels that fail on empty tensors or inconsistent shapes, by falling back to TensorFlow's kernel.
#pragma once

#include <memory>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Whether a oneDNN kernel needs TensorFlow's own kernel as a fallback.
bool NeedsPlainKernel(const tensorflow::NodeDef& node);

// Returns a kernel that runs `one_dnn` if it supports the inputs, else `plain`, TensorFlow's own kernel, which handles
// empty tensors and reports inconsistent shapes.
tensorflow::OpKernel* MakeOneDnnOrPlainKernel(tensorflow::OpKernelConstruction* construction,
                                              std::unique_ptr<tensorflow::OpKernel> one_dnn,
                                              std::unique_ptr<tensorflow::OpKernel> plain);

}  // namespace tf_ipu_shim
