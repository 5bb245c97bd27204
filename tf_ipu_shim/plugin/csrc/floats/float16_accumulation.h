// Sums and products of 16-bit floats: added up in float32, as an IPU and XLA do.
#pragma once

#include <memory>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Whether an op adds up, or multiplies, 16-bit floats.
bool AddsUpHalves(const tensorflow::NodeDef& node);

// The same op of float32.
tensorflow::NodeDef OfFloats(tensorflow::NodeDef node);

// A kernel that has the kernel of `OfFloats` take float32 and gives 16-bit floats, rounded as on that device.
tensorflow::OpKernel* HalvesByFloats(tensorflow::OpKernelConstruction* construction,
                                     std::unique_ptr<tensorflow::OpKernel> of_floats, int ordinal);

}  // namespace tf_ipu_shim
