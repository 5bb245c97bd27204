// Zero-copy transfers: host and chip share one memory here, so a host tensor can be used on an IPU without a copy.
#pragma once

#include "device/arena.h"
#include "tensorflow/core/framework/tensor.h"

namespace tf_ipu_shim {

// Returns whether a host tensor's memory can be aliased. TensorFlow must own it. It must be a whole, aligned buffer,
// and so large that a copy would cost more.
bool CanAliasHostBuffer(const tensorflow::Tensor& host);

// Returns a chip's tensor that aliases the host tensor's memory and counts as allocated in the arena. While both exist,
// TensorFlow writes to neither: each sees that its buffer has another user.
tensorflow::Tensor AliasHostBuffer(const tensorflow::Tensor& host, Arena* arena);

}  // namespace tf_ipu_shim
