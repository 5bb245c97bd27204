// Stores the number of replicas of each infeed as a resource with the infeed's name, next to its iterator.
#include "feeds/infeed_replicas.h"

#include <mutex>

#include "device/device.h"
#include "programs/lowering_call.h"
#include "tensorflow/core/framework/function.h"

namespace tf_ipu_shim {

using namespace tensorflow;  // NOLINT: this file keeps a TensorFlow resource

namespace {

class InfeedReplicas : public ResourceBase {
 public:
  // Returns the number of the programs before, or `replicas` if there were none on this device and configuration.
  int64_t Expect(int device, int64_t epoch, int64_t replicas) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (device != device_ || epoch != epoch_) {
      device_ = device;
      epoch_ = epoch;
      replicas_ = replicas;
    }
    return replicas_;
  }
  std::string DebugString() const override { return "the number of replicas of an infeed"; }

 private:
  std::mutex mutex_;  // guards all below
  int device_ = -1;
  int64_t epoch_ = 0, replicas_ = 0;
};

}  // namespace

Status CheckInfeedReplicas(OpKernelContext* context, ResourceMgr* resources, const std::string& infeed,
                           int64_t replicas) {
  IpuDevice* const device = AsIpuDevice(context->function_library()->device());
  if (device == nullptr) return OkStatus();
  InfeedReplicas* known = nullptr;
  TF_RETURN_IF_ERROR(resources->LookupOrCreate<InfeedReplicas>(
      resources->default_container(), infeed, &known, [](InfeedReplicas** made) {
        *made = new InfeedReplicas;
        return OkStatus();
      }));
  core::ScopedUnref release(known);
  const int64_t expected = known->Expect(device->ordinal(), CurrentEpoch(device->ordinal()), replicas);
  if (expected == replicas) return OkStatus();
  return errors::FailedPrecondition(
      "Infeed '", infeed, "' has a replication factor of ", expected, " from the program that used it first, and this ",
      "program has ", replicas, ". Give each program its own IPUInfeedQueue, or run the queue's `initializer` between "
      "them.");
}

void ForgetInfeedReplicas(ResourceMgr* resources, const std::string& infeed) {
  resources->Delete<InfeedReplicas>(resources->default_container(), infeed).IgnoreError();
}

}  // namespace tf_ipu_shim
