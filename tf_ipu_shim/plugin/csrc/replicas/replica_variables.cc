// Creates and updates the variable copies of replicas other than the first.
#include "replicas/replica_variables.h"

#include <cstring>

#include "device/counters.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file keeps TensorFlow's variables

bool SameBuffer(const Tensor& one, const Tensor& other) {
  return one.dtype() == other.dtype() && one.shape() == other.shape() && one.data() == other.data();
}

}  // namespace

ReplicaVariables::~ReplicaVariables() {
  for (const Copy& copy : copies_) {
    if (!copy.name.empty()) resources_->Delete<Var>(kVariableContainer, copy.name).IgnoreError();
  }
}

Status ReplicaVariables::Make(OpKernelContext* context, size_t index) {
  Copy& copy = copies_[index];
  const ResourceHandle& original = HandleFromInput(context, variables_[index].argument);
  DataType type = original.dtypes_and_shapes().empty() ? DT_FLOAT : original.dtypes_and_shapes()[0].dtype;
  const std::string name = NewVariableName();
  copy.variable.reset(new Var(type));
  copy.variable->Ref();  // for the resource manager
  TF_RETURN_IF_ERROR(context->resource_manager()->Create<Var>(kVariableContainer, name, copy.variable.get()));
  resources_ = context->resource_manager();
  copy.name = name;
  // Field by field: a handle of TensorFlow 2 holds its variable, and a copy of it would be that variable.
  ResourceHandle handle;
  handle.set_device(context->function_library()->device()->name());
  handle.set_container(kVariableContainer);
  handle.set_name(name);
  handle.set_hash_code(original.hash_code());
  handle.set_maybe_type_name(original.maybe_type_name());
  handle.set_dtypes_and_shapes(original.dtypes_and_shapes());
  copy.handle = Tensor(DT_RESOURCE, TensorShape({}));
  copy.handle.scalar<ResourceHandle>()() = handle;
  return OkStatus();
}

Status ReplicaVariables::Fill(const IpuDevice& device, size_t copy, const Tensor& value, Tensor* filled) {
  if (!DataTypeCanUseMemcpy(value.dtype())) {
    return errors::InvalidArgument("A variable of ", DataTypeString(value.dtype()),
                                   " cannot be on an IPU. Place it on the CPU.");
  }
  Tensor made(ArenaOf(device.ordinal(), variables_[copy].chip), value.dtype(), value.shape());
  if (!made.IsInitialized()) {
    return errors::ResourceExhausted("The host has no memory left for a variable of ", value.TotalBytes(),
                                     " bytes on IPU ", variables_[copy].chip);
  }
  if (value.TotalBytes() > 0) std::memcpy(made.data(), value.data(), value.TotalBytes());
  CountersOf(device.ordinal()).host_to_device.Add(value.TotalBytes());
  *filled = made;
  return OkStatus();
}

Status ReplicaVariables::Upload(OpKernelContext* context, const IpuDevice& device) {
  mutex_lock lock(mutex_);
  copies_.resize(variables_.size());
  for (size_t index = 0; index < copies_.size(); ++index) {
    Copy& copy = copies_[index];
    if (copy.name.empty()) TF_RETURN_IF_ERROR(Make(context, index));
    core::RefCountPtr<Var> variable;
    Tensor value(DT_INVALID);
    if (FindVariable(context, variables_[index].argument, &variable).ok()) {
      tf_shared_lock lock(*variable->mu());
      if (variable->is_initialized) value = *variable->tensor();
    }
    const bool is_current = copy.is_known && SameBuffer(copy.known, value);
    copy.known = Tensor(DT_INVALID);
    copy.is_known = false;  // until a run succeeds
    if (is_current) continue;
    mutex_lock copy_lock(*copy.variable->mu());
    copy.variable->is_initialized = value.dtype() != DT_INVALID && value.IsInitialized();
    if (copy.variable->is_initialized) TF_RETURN_IF_ERROR(Fill(device, index, value, copy.variable->tensor()));
  }
  return OkStatus();
}

void ReplicaVariables::Keep(OpKernelContext* context) {
  mutex_lock lock(mutex_);
  for (size_t index = 0; index < copies_.size(); ++index) {
    core::RefCountPtr<Var> variable;
    if (!FindVariable(context, variables_[index].argument, &variable).ok()) continue;
    tf_shared_lock variable_lock(*variable->mu());
    if (!variable->is_initialized) continue;
    copies_[index].known = *variable->tensor();
    copies_[index].is_known = true;
  }
}

}  // namespace tf_ipu_shim
