// Kernels of oneDNN's that take no empty tensors, give back others than there should be, or read beyond what they are
// given.
#pragma once

#include <memory>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Whether a kernel of oneDNN's needs TensorFlow's own beside it.
bool NeedsPlainKernel(const tensorflow::NodeDef& node);

// A kernel that runs `one_dnn` where the tensors that it is given are for it, else `plain`: TensorFlow's own, which has
// the results for empty tensors and the errors for shapes that do not belong together.
tensorflow::OpKernel* OneDnnOrPlain(tensorflow::OpKernelConstruction* construction,
                                    std::unique_ptr<tensorflow::OpKernel> one_dnn,
                                    std::unique_ptr<tensorflow::OpKernel> plain);

}  // namespace tf_ipu_shim
