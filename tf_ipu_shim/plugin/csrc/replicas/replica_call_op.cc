// `IpuReplicaCall`: runs one replica's function.
// Each replica has its own cancellation manager: a replica that fails ends first, and its error then ends the others.
// With a shared manager all would end at once, and TensorFlow could report the error of a replica that was only
// cancelled. Replicas that wait for one whose run has ended are notified.
#include <atomic>

#include "device/device.h"
#include "replicas/rendezvous.h"
#include "programs/program_runs.h"
#include "tensorflow/core/common_runtime/input_colocation_exemption_registry.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/kernels/partitioned_function_ops.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

// The attributes that TensorFlow's call has.
REGISTER_OP("IpuReplicaCall")
    .Input("args: Tin")
    .Output("output: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("f: func")
    .Attr("config: string = ''")
    .Attr("config_proto: string = ''")
    .Attr("executor_type: string = ''")
    // The replica's index and its program.
    .Attr("run_group: string = ''")
    .Attr("replica: int >= 0 = 0")
    .SetIsStateful()
    .SetShapeFn(shape_inference::UnknownShape);

// As of TensorFlow's calls: an iterator on the host and a variable on an IPU may go into one.
REGISTER_INPUT_COLOCATION_EXEMPTION("IpuReplicaCall");

class ReplicaCallOp : public PartitionedCallOp {
 public:
  explicit ReplicaCallOp(OpKernelConstruction* context) : PartitionedCallOp(context) {
    OP_REQUIRES_OK(context, context->GetAttr("run_group", &run_group_));
    OP_REQUIRES_OK(context, context->GetAttr("replica", &replica_));
    run_number_ = &RunNumberOf(run_group_);
  }
  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    CancellationManager* const outer = context->cancellation_manager();
    auto* const own = new CancellationManager(outer);
    context->params()->cancellation_manager = own;
    PartitionedCallOp::ComputeAsync(context, [this, context, outer, own, done = std::move(done)] {
      context->params()->cancellation_manager = outer;
      delete own;
      // One that failed cancels those that wait for it.
      if (context->status().ok()) ReplicaRendezvousManager::Get().Ended(run_group_, *run_number_, replica_);
      done();
    });
  }

 private:
  string run_group_;
  int64_t replica_ = 0;
  const std::atomic<int64_t>* run_number_ = nullptr;
};

REGISTER_KERNEL_BUILDER(Name("IpuReplicaCall").Device(kDeviceType), ReplicaCallOp);

}  // namespace
}  // namespace tf_ipu_shim
