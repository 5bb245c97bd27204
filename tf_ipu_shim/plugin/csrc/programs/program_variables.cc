// Finds the variable behind a handle, and creates aliases of it on an IPU device.
#include "programs/program_variables.h"

#include <atomic>

#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/function.h"

namespace tf_ipu_shim {

using namespace tensorflow;  // NOLINT: this file finds TensorFlow's variables

std::string NewVariableName() {
  static std::atomic<int64_t> serial{0};
  return strings::StrCat("variable_", serial++);
}

Status FindVariable(OpKernelContext* context, int input, core::RefCountPtr<Var>* variable) {
  const ResourceHandle& handle = HandleFromInput(context, input);
  if (handle.device() == context->device()->attributes().name()) return LookupResource(context, handle, variable);
  if (handle.IsRefCounting()) {
    const auto held = handle.GetResource<Var>();
    if (!held.ok()) return held.status();
    (*held)->Ref();
    variable->reset(*held);
    return OkStatus();
  }
  Device* home = nullptr;
  TF_RETURN_IF_ERROR(context->function_library()->device_mgr()->LookupDevice(handle.device(), &home));
  Var* found = nullptr;
  TF_RETURN_IF_ERROR(home->resource_manager()->Lookup<Var>(handle.container(), handle.name(), &found));
  variable->reset(found);
  return OkStatus();
}

Status VariableAlias::Make(OpKernelContext* context, int input) {
  core::RefCountPtr<Var> variable;
  TF_RETURN_IF_ERROR(FindVariable(context, input, &variable));
  const std::string name = NewVariableName();
  variable->Ref();  // for the resource manager
  TF_RETURN_IF_ERROR(context->resource_manager()->Create<Var>(kVariableContainer, name, variable.get()));
  resources_ = context->resource_manager();
  name_ = name;
  const ResourceHandle& original = HandleFromInput(context, input);
  ResourceHandle handle;
  handle.set_device(context->device()->attributes().name());
  handle.set_container(kVariableContainer);
  handle.set_name(name);
  handle.set_hash_code(original.hash_code());
  handle.set_maybe_type_name(original.maybe_type_name());
  handle.set_dtypes_and_shapes(original.dtypes_and_shapes());
  handle_ = Tensor(DT_RESOURCE, TensorShape({}));
  handle_.scalar<ResourceHandle>()() = handle;
  return OkStatus();
}

VariableAlias::~VariableAlias() {
  if (!name_.empty()) resources_->Delete<Var>(kVariableContainer, name_).IgnoreError();
}

}  // namespace tf_ipu_shim
