// Runs ops that XLA supports and TensorFlow's CPU kernels do not, each as a program of one op.
#ifndef TF_IPU_SHIM_OP_PROGRAMS_H_
#define TF_IPU_SHIM_OP_PROGRAMS_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Whether the CPU kernel does not support a node: channels-first layout, or 16-bit floats without a CPU kernel.
bool RunsAsProgram(const tensorflow::NodeDef& node);

// Creates the kernel of a program that consists of this op.
tensorflow::Status MakeOpProgram(tensorflow::OpKernelConstruction* construction, tensorflow::OpKernel** kernel);

// Registers kernels for dtypes that have no CPU kernel.
void RegisterOpPrograms();

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_OP_PROGRAMS_H_
