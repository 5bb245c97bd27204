// Validates the lowering's answer, so that a mistake in it is an error of the op, not a crash.
#pragma once

#include "protocol/program_messages.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// Checks an answer for the `IpuProgram` that runs in `context`.
tensorflow::Status CheckAnswer(tensorflow::OpKernelContext* context, const ProgramAnswer& answer);

}  // namespace tf_ipu_shim
