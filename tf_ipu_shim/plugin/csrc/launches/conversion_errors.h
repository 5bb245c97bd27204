// Turns C++ exceptions of TensorFlow's XLA conversions into errors. They throw when they read an invalid result, such
// as the shape of a convolution without channels, and nothing above them catches it.
#pragma once

#include <exception>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// Returns the error for a conversion's exception. Python recognises it by its first words (`driver/uncompilable`).
inline tensorflow::Status ConversionError(const std::exception& error) {
  return tensorflow::errors::InvalidArgument("tf2xla conversion failed: an op's conversion threw: ", error.what());
}

}  // namespace tf_ipu_shim
