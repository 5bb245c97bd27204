// TensorFlow's conversions to XLA throw where they read a result that is an error, such as the shape of a convolution
// without channels. Nothing above them catches it.
#pragma once

#include <exception>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// An exception of a conversion as the error that it stands for. Python knows it by its first words
// (`driver/uncompilable`).
inline tensorflow::Status ConversionThrew(const std::exception& error) {
  return tensorflow::errors::InvalidArgument("tf2xla conversion failed: an op's conversion threw: ", error.what());
}

}  // namespace tf_ipu_shim
