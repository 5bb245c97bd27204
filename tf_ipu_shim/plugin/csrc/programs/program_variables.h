// Finds a program's variables by the handles that it receives, and creates aliases of them on its device.
#pragma once

#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"

namespace tf_ipu_shim {

// The container of the program's own variables, and an unused name.
inline constexpr char kVariableContainer[] = "ipu_programs";
std::string NewVariableName();

// The variable behind an input, even if it was created on another device than the program's.
tensorflow::Status FindVariable(tensorflow::OpKernelContext* context, int input,
                                tensorflow::core::RefCountPtr<tensorflow::Var>* variable);

// An alias on the program's device for a variable that a script created outside the IPU's scope, such as an optimizer's
// step. All memory is the host's here: only the name of its device keeps XLA from using it.
class VariableAlias {
 public:
  ~VariableAlias();
  tensorflow::Status Make(tensorflow::OpKernelContext* context, int input);
  tensorflow::Tensor* handle() { return &handle_; }

 private:
  tensorflow::ResourceMgr* resources_ = nullptr;
  std::string name_;
  tensorflow::Tensor handle_;
};

}  // namespace tf_ipu_shim
