// Finds an infeed's iterator, gets its next element and copies it to an IPU.
#include "feeds/infeed_source.h"

#include <cstring>
#include <map>

#include "device/counters.h"
#include "device/device.h"
#include "feeds/infeed_replicas.h"
#include "process/interrupts.h"
#include "device/aliased_buffers.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/framework/function.h"

namespace tf_ipu_shim {

using namespace tensorflow;  // NOLINT: this file finds TensorFlow's iterators

// When one iterator replaces another of the same name, a program always finds one of them.
static mutex* SelectionMutex() {
  static auto* exchange = new mutex;
  return exchange;
}

// The names of the iterators from which infeeds read instead of the ones they created; guarded by `SelectionMutex`.
static std::map<std::string, std::string>* SelectedIterators() {
  static auto* selected = new std::map<std::string, std::string>;
  return selected;
}

Status InfeedSource::Init(OpKernelConstruction* construction) {
  TF_RETURN_IF_ERROR(construction->GetAttr("N", &inputs_));
  TF_RETURN_IF_ERROR(construction->GetAttr("container", &container_));
  return construction->GetAttr("shared_name", &name_);
}

Status InfeedSource::Find(OpKernelContext* context, int64_t replicas,
                          core::RefCountPtr<data::IteratorResource>* iterator) const {
  std::string device_name = "/device:CPU:0", container = container_, name = name_;
  if (inputs_ > 0) {
    const ResourceHandle& handle = HandleFromInput(context, context->num_inputs() - 1);
    if (handle.IsRefCounting()) {
      const auto held = handle.GetResource<data::IteratorResource>();
      if (!held.ok()) return held.status();
      (*held)->Ref();
      iterator->reset(*held);
      return OkStatus();
    }
    device_name = handle.device();
    container = handle.container();
    name = handle.name();
  }
  Device* host = nullptr;
  TF_RETURN_IF_ERROR(context->function_library()->device_mgr()->LookupDevice(device_name, &host));
  ResourceMgr* resources = host->resource_manager();
  data::IteratorResource* found = nullptr;
  tf_shared_lock lock(*SelectionMutex());
  const auto selected = SelectedIterators()->find(name);
  if (!resources
           ->Lookup(container.empty() ? resources->default_container() : container,
                    selected == SelectedIterators()->end() ? name : selected->second, &found)
           .ok()) {
    return errors::FailedPrecondition(
        "GetNext() failed because the iterator has not been initialized. Ensure that you have run the initializer "
        "operation for this iterator before getting the next element. (Infeed ",
        name, ": run infeed_queue.initializer before the first program, in the same session if there is one. Run it "
              "again after infeed_queue.deleter.)");
  }
  iterator->reset(found);
  return CheckInfeedReplicas(context, resources, name, replicas);
}

Status InfeedSource::Next(OpKernelContext* context, data::IteratorResource* iterator, std::vector<Tensor>* element,
                          bool* end) const {
  CancellationManager* const step = context->cancellation_manager();
  CancellationManager own;
  const CancellationToken token = step->get_cancellation_token();
  const auto cancel = [&own] {
    if (!Interrupted()) own.StartCancel();
  };
  if (!step->RegisterCallback(token, cancel)) return errors::Cancelled("The program was cancelled at its infeed");
  context->params()->cancellation_manager = &own;
  const Status status = iterator->GetNext(context, element, end);
  context->params()->cancellation_manager = step;
  step->DeregisterCallback(token);
  return Named(status);
}

Status InfeedSource::End() const {
  return errors::OutOfRange("End of sequence: the dataset of ", Name(),
                            " has no more elements. End it with .repeat(), or ask for fewer iterations.");
}

Status InfeedSource::Named(const Status& status) const {
  if (status.ok() || errors::IsCancelled(status) || errors::IsOutOfRange(status)) return status;
  return errors::CreateWithUpdatedMessage(
      status, strings::StrCat(status.message(), "\nThis happened in the dataset of ", Name(), "."));
}

Status PutInfeed(ResourceMgr* resources, const std::string& name, core::RefCountPtr<data::IteratorResource> iterator,
                 core::RefCountPtr<data::IteratorResource>* before) {
  const std::string& container = resources->default_container();
  mutex_lock lock(*SelectionMutex());
  ForgetInfeedReplicas(resources, name);
  data::IteratorResource* found = nullptr;
  if (resources->Lookup(container, name, &found).ok()) {
    before->reset(found);
    TF_RETURN_IF_ERROR(resources->Delete<data::IteratorResource>(container, name));
  }
  return iterator == nullptr ? OkStatus() : resources->Create(container, name, iterator.release());
}

void SelectIterator(const std::string& infeed, const std::string& iterator) {
  mutex_lock lock(*SelectionMutex());
  if (iterator.empty()) {
    SelectedIterators()->erase(infeed);
  } else {
    (*SelectedIterators())[infeed] = iterator;
  }
}

std::string InfeedSource::Name() const { return name_.empty() ? "the infeed" : "infeed '" + name_ + "'"; }

Status CheckElement(const std::string& op, const std::vector<Tensor>& element, const DataTypeVector& types) {
  DataTypeVector found;
  for (const Tensor& tensor : element) found.push_back(tensor.dtype());
  if (found == types) return OkStatus();
  return errors::InvalidArgument(op, " takes elements of ", DataTypeVectorString(types), ", and the dataset gives ",
                                 DataTypeVectorString(found));
}

void CountToIpu(OpKernelContext* context, int64_t bytes) {
  if (IpuDevice* device = AsIpuDevice(context->function_library()->device())) {
    CountersOf(device->ordinal()).host_to_device.Add(bytes);
  }
}

void CountFromIpu(OpKernelContext* context, int64_t bytes) {
  if (IpuDevice* device = AsIpuDevice(context->function_library()->device())) {
    CountersOf(device->ordinal()).device_to_host.Add(bytes);
  }
}

Status CopyToIpu(OpKernelContext* context, int64_t chip, const Tensor& value, Tensor* copy) {
  IpuDevice* device = AsIpuDevice(context->function_library()->device());
  if (device == nullptr || !DataTypeCanUseMemcpy(value.dtype())) {
    *copy = value;
    return OkStatus();
  }
  Arena* const arena = ArenaOf(device->ordinal(), chip);
  if (CanAliasHostBuffer(value)) {
    CountersOf(device->ordinal()).host_to_device.Add(value.TotalBytes());
    *copy = AliasHostBuffer(value, arena);
    return OkStatus();
  }
  Tensor made(arena, value.dtype(), value.shape());
  if (!made.IsInitialized()) {
    return errors::ResourceExhausted("The host has no memory left for an infeed element of ", value.TotalBytes(),
                                     " bytes on IPU ", chip);
  }
  if (value.TotalBytes() > 0) std::memcpy(made.data(), value.data(), value.TotalBytes());
  CountersOf(device->ordinal()).host_to_device.Add(value.TotalBytes());
  *copy = made;
  return OkStatus();
}

}  // namespace tf_ipu_shim
