// Iterates over the variables that an op writes new values to.
#pragma once

#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

namespace tf_ipu_shim {

inline bool UpdatesVariables(const std::string& op) {
  for (const char* family : {"ResourceApply", "ResourceSparseApply", "ResourceScatter"}) {
    if (op.rfind(family, 0) == 0) return true;
  }
  return op == "AssignAddVariableOp" || op == "AssignSubVariableOp";
}

// Calls a function with each variable that the op updates.
template <typename Function>
void ForEachUpdatedVariable(tensorflow::OpKernelContext* context, const Function& function) {
  if (!UpdatesVariables(context->op_kernel().def().op())) return;
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (context->input_dtype(i) != tensorflow::DT_RESOURCE) continue;
    tensorflow::core::RefCountPtr<tensorflow::Var> variable;
    if (!LookupResource(context, HandleFromInput(context, i), &variable).ok()) continue;
    tensorflow::mutex_lock lock(*variable->mu());
    if (variable->is_initialized) function(variable->tensor());
  }
}

}  // namespace tf_ipu_shim
