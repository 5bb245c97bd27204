// Ops that the CPU has no kernel for, and XLA has: each runs as a program of its own.
#ifndef TF_IPU_SHIM_OP_PROGRAMS_H_
#define TF_IPU_SHIM_OP_PROGRAMS_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Whether a node wants what the CPU's kernel of its op refuses: channels before the spatial dimensions, or 16-bit
// numbers where the CPU has none.
bool RunsAsProgram(const tensorflow::NodeDef& node);

// The kernel of a program that holds this one op.
tensorflow::Status MakeOpProgram(tensorflow::OpKernelConstruction* construction, tensorflow::OpKernel** kernel);

// Kernels for types that the CPU has no kernel of the op for.
void RegisterOpPrograms();

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_OP_PROGRAMS_H_
