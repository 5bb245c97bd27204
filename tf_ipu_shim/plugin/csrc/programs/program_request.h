// Builds the request to lower a program: its traced function, and the known properties of its arguments.
#pragma once

#include "protocol/program_messages.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

// Describes an input of a running op; a resource input includes its variable.
ArgumentMessage DescribeArgument(tensorflow::OpKernelContext* context, int input);

// Makes the request of an op that runs in `context`, for the TensorFlow device `ordinal`. The functions that it reaches
// are `library`, or, where that is empty, in the library of the runtime.
tensorflow::Status MakeRequest(tensorflow::OpKernelContext* context, int ordinal, const std::string& function,
                               const tensorflow::FunctionDefLibrary& library, ProgramRequest* request);

}  // namespace tf_ipu_shim
