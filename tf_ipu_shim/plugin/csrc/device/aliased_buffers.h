// Memory that the host lends to a chip: both are the same memory here, so that a tensor that goes to an IPU need not be
// copied to be there.
#pragma once

#include "device/arena.h"
#include "tensorflow/core/framework/tensor.h"

namespace tf_ipu_shim {

// Whether it can: not where the memory is somebody else's (NumPy's), part of a larger tensor's or not aligned, or so little
// that a copy is as fast.
bool CanLend(const tensorflow::Tensor& host);

// A tensor of a chip with a host's values, in that one's memory, which counts as allocated in the arena. While both are
// there, TensorFlow writes to neither: each sees that its buffer has another user.
tensorflow::Tensor Lent(const tensorflow::Tensor& host, Arena* arena);

}  // namespace tf_ipu_shim
