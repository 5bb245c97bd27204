// Refuses to call Python from the thread of asynchronous eager execution. Python may be waiting for that thread while
// it holds its lock, so the call would deadlock.
#pragma once

#include <string>

#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {

// Refuses to call Python on that thread. TensorFlow calls it eager_async_executor and puts a number behind that, and the
// system cuts names after 15 letters; checked on 2.15.1 and 2.21.0.
inline tensorflow::Status CheckMayCallPython() {
  std::string thread;
  if (!tensorflow::Env::Default()->GetCurrentThreadName(&thread) || thread.rfind("eager_async_exe", 0) != 0) {
    return tensorflow::OkStatus();
  }
  return tensorflow::errors::Unimplemented(
      "Asynchronous eager execution is not supported with IPUs, whose ops call Python to attach and to lower programs. Call "
      "tf.config.experimental.set_synchronous_execution(True), or leave the asynchronous scope.");
}

}  // namespace tf_ipu_shim
