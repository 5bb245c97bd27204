// Collectives between replicas. A traced function holds `IpuCrossReplicaSum` and `IpuReplicaGather`; the compiler
// replaces each by one `IpuCollective` per replica. The replicas of a run rendezvous there (see
// `replicas/rendezvous.h`). The last to arrive gets the values of other instances of the job through Python
// (`gather_instances` of `runtime/op_requests.py`).
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/counters.h"
#include "device/device.h"
#include "floats/float16_overflow.h"
#include "protocol/driver_messages.h"
#include "replicas/rendezvous.h"
#include "process/python_call.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/util/batch_util.h"
#include "tensorflow/core/util/work_sharder.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a set of TensorFlow ops

Status GatheredShape(shape_inference::InferenceContext* context, int64_t replicas) {
  shape_inference::ShapeHandle shape;
  TF_RETURN_IF_ERROR(context->Concatenate(context->Vector(replicas), context->input(0), &shape));
  context->set_output(0, shape);
  return OkStatus();
}

REGISTER_OP("IpuCrossReplicaSum")
    .Input("input: dtype")
    .Output("output: dtype")
    .Attr("dtype: numbertype")
    .Attr("replica_group_size: int = 0")
    .SetShapeFn(shape_inference::UnchangedShape);

REGISTER_OP("IpuReplicaGather")
    .Input("input: dtype")
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("replication_factor: int >= 1")
    .SetShapeFn([](shape_inference::InferenceContext* context) {
      int64_t replicas;
      TF_RETURN_IF_ERROR(context->GetAttr("replication_factor", &replicas));
      return GatheredShape(context, replicas);
    });

REGISTER_OP("ReplicationIndex").Output("output: int32").SetIsStateful().SetShapeFn(shape_inference::ScalarShape);
REGISTER_OP("IpuReplicationFactor").Output("output: int32").SetShapeFn(shape_inference::ScalarShape);

REGISTER_OP("IpuCollective")
    .Input("input: dtype")
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("kind: {'sum', 'gather'}")
    // The program, and the collective in it; the same for all replicas.
    .Attr("run_group: string")
    .Attr("rendezvous: int")
    .Attr("replica: int >= 0")
    .Attr("replicas: int >= 1")
    // Replicas whose values go together: only of this instance, or counted over all.
    .Attr("group_size: int >= 1")
    .Attr("shards: int >= 1")
    // The number of the job's replicas, if replicas of several instances take part, and their name of this collective.
    .Attr("instances: int >= 1 = 1")
    .Attr("instance: int >= 0 = 0")
    .Attr("among_instances: string = ''")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* context) {
      string kind;
      int64_t replicas;
      TF_RETURN_IF_ERROR(context->GetAttr("kind", &kind));
      TF_RETURN_IF_ERROR(context->GetAttr("group_size", &replicas));
      if (kind == "sum") return shape_inference::UnchangedShape(context);
      return GatheredShape(context, replicas);
    });

// Gives the shape of a value that of all replicas' values.
Status AddReplicas(int64_t replicas, TensorShape* shape) {
  if (shape->dims() + 1 > TensorShape::MaxDimensions()) {
    return errors::InvalidArgument("A gather of replicas cannot take ", shape->dims(), " axes: there would be more than ",
                                   TensorShape::MaxDimensions());
  }
  return shape->InsertDimWithStatus(0, replicas);
}

// Outside replicated programs the number of replicas is one.
template <int32_t kValue>
class ReplicaConstantOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &output));
    output->scalar<int32_t>()() = kValue;
  }
};

class SingleReplicaSumOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override { context->set_output(0, context->input(0)); }
};

class SingleReplicaGatherOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    TensorShape shape = context->input(0).shape();
    OP_REQUIRES_OK(context, AddReplicas(1, &shape));
    Tensor output;
    OP_REQUIRES(context, output.CopyFrom(context->input(0), shape), errors::Internal("A gather cannot take ", name()));
    context->set_output(0, output);
  }
};

// How many bytes are summed up, and copied to all, while they are in a core's cache.
constexpr int64_t kPartBytes = 16 << 10;

// On all cores: the replicas that would use them wait. Several results are copies of the first.
template <typename T>
void SumInto(OpKernelContext* context, const std::vector<const char*>& given, const std::vector<Tensor>& results) {
  std::vector<const T*> values;
  std::vector<T*> sums;
  for (const char* value : given) values.push_back(reinterpret_cast<const T*>(value));
  for (const Tensor& result : results) sums.push_back(const_cast<T*>(result.flat<T>().data()));
  const auto add = [&sums, &values](int64_t begin, int64_t end) {
    using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
    constexpr int64_t kPart = kPartBytes / sizeof(T);
    for (int64_t at = begin; at < end; at += kPart) {
      const int64_t count = std::min(kPart, end - at);
      Eigen::Map<Array> part(sums[0] + at, count);
      part = Eigen::Map<const Array>(values[0] + at, count);
      for (size_t place = 1; place < values.size(); ++place) part += Eigen::Map<const Array>(values[place] + at, count);
      for (size_t copy = 1; copy < sums.size(); ++copy) Eigen::Map<Array>(sums[copy] + at, count) = part;
    }
  };
  const auto* workers = context->device()->tensorflow_cpu_worker_threads();
  Shard(workers->num_threads, workers->workers, results[0].NumElements(), static_cast<int64_t>(values.size()), add);
}

class CollectiveOp : public AsyncOpKernel {
 public:
  explicit CollectiveOp(OpKernelConstruction* context) : AsyncOpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("kind", &kind_));
    OP_REQUIRES_OK(context, context->GetAttr("run_group", &run_group_));
    OP_REQUIRES_OK(context, context->GetAttr("rendezvous", &rendezvous_));
    OP_REQUIRES_OK(context, context->GetAttr("replica", &replica_));
    OP_REQUIRES_OK(context, context->GetAttr("replicas", &replicas_));
    OP_REQUIRES_OK(context, context->GetAttr("group_size", &group_size_));
    OP_REQUIRES_OK(context, context->GetAttr("shards", &shards_));
    OP_REQUIRES_OK(context, context->GetAttr("instances", &instances_));
    OP_REQUIRES_OK(context, context->GetAttr("instance", &instance_));
    OP_REQUIRES_OK(context, context->GetAttr("among_instances", &among_instances_));
    OP_REQUIRES_OK(context, context->GetAttr(kChipAttr, &chip_));
    OP_REQUIRES(context,
                chip_ >= 0 && chip_ < kMaxChips && replicas_ <= kMaxChips && shards_ <= kMaxChips / replicas_,
                errors::InvalidArgument(name(), ": ", replicas_, " replicas of ", shards_, " IPUs; a device has at most ",
                                        kMaxChips));
    OP_REQUIRES(context,
                replicas_ * instances_ % group_size_ == 0 && replica_ < replicas_ && instance_ < instances_,
                errors::InvalidArgument(name(), ": groups of ", group_size_, " of ", replicas_, " replicas in each of ",
                                        instances_, " instances"));
    participants_ = instances_ > 1 ? replicas_ : group_size_;
    OP_REQUIRES(context, replicas_ % participants_ == 0,
                errors::InvalidArgument(name(), ": groups of ", group_size_, " of ", replicas_, " replicas"));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    CancellationManager* manager = context->cancellation_manager();
    const ReplicaRendezvousManager::Key key{run_group_, rendezvous_, replica_ / participants_,
                                            context->frame_iter().iter_id};
    const int64_t place = replica_ % participants_;
    ReplicaRendezvous::Participant participant{context, std::move(done), manager->get_cancellation_token(), name(), {}};
    std::unique_ptr<ReplicaRendezvous> complete =
        ReplicaRendezvousManager::Get().Join(key, place, participants_, std::move(participant));
    // While this replica waited for others, one of them may have ended the step and deleted this object.
    if (complete == nullptr) return;
    if (instances_ == 1) return Finish(*complete);
    // Waiting for other instances uses a separate thread: the few threads that run ops may all be needed until then.
    std::shared_ptr<ReplicaRendezvous> rendezvous = std::move(complete);
    Env::Default()->SchedClosure([this, rendezvous] { Finish(*rendezvous); });
  }

 private:
  // Runs on the thread of the replica that came last.
  void Finish(const ReplicaRendezvous& rendezvous) {
    const ReplicaRendezvous::Participant& last = rendezvous.participants[replica_ % participants_];
    std::vector<Tensor> results;
    Status status = Combine(last.context, rendezvous, &results);
    for (const ReplicaRendezvous::Participant& participant : rendezvous.participants) {
      // Not `DeregisterCallback`: that would wait for a callback that waits for this replica.
      participant.context->cancellation_manager()->TryDeregisterCallback(participant.token);
    }
    if (status.ok()) CountExchange(last.context, results[0].TotalBytes());
    for (size_t place = 0; place < rendezvous.participants.size(); ++place) {
      OpKernelContext* const context = rendezvous.participants[place].context;
      if (status.ok()) {
        context->set_output(0, results[place]);
      } else {
        context->SetStatus(status);
      }
    }
    results.clear();  // whoever takes one may then use its memory
    for (const ReplicaRendezvous::Participant& participant : rendezvous.participants) participant.done();
  }

  // A result for each replica; several may be one tensor.
  Status Combine(OpKernelContext* context, const ReplicaRendezvous& rendezvous, std::vector<Tensor>* results) {
    const Tensor& first = rendezvous.participants[0].context->input(0);
    for (size_t place = 1; place < rendezvous.participants.size(); ++place) {
      const Tensor& other = rendezvous.participants[place].context->input(0);
      if (other.shape() == first.shape()) continue;
      return errors::InvalidArgument("Collective ", name(), " got shape ", first.shape().DebugString(),
                                     " from replica 0 of its group and ", other.shape().DebugString(), " from replica ",
                                     place, ". All replicas have to bring the same shape.");
    }
    // In the order of the replicas, so every run has the same bits.
    if (instances_ > 1) return CombineInstances(rendezvous, results);
    OpKernelContext* const home = rendezvous.participants[0].context;
    Tensor shared;
    if (kind_ == "gather") {
      TensorShape shape = first.shape();
      TF_RETURN_IF_ERROR(AddReplicas(rendezvous.participants.size(), &shape));
      TF_RETURN_IF_ERROR(home->allocate_temp(first.dtype(), shape, &shared));
      for (size_t place = 0; place < rendezvous.participants.size(); ++place) {
        TF_RETURN_IF_ERROR(
            batch_util::CopyElementToSlice(rendezvous.participants[place].context->input(0), &shared, place));
      }
      results->assign(rendezvous.participants.size(), shared);
      return OkStatus();
    }
    return Sum(context, rendezvous, results);
  }

  // All instances receive all values, and each computes the results of its replicas: the same bits as in one instance.
  Status CombineInstances(const ReplicaRendezvous& rendezvous, std::vector<Tensor>* results) {
    const Tensor& first = rendezvous.participants[0].context->input(0);
    if (!DataTypeCanUseMemcpy(first.dtype())) {
      return errors::Unimplemented(name(), ": replicas of several instances cannot exchange ",
                                   DataTypeString(first.dtype()));
    }
    const size_t bytes = first.TotalBytes();
    ReplicaValues values;
    values.name = among_instances_;
    values.type = first.dtype();
    values.shape.push_back(replicas_);
    for (const int64_t size : first.shape().dim_sizes()) values.shape.push_back(size);
    values.values.value.reserve(bytes * replicas_);
    for (const ReplicaRendezvous::Participant& participant : rendezvous.participants) {
      values.values.value.append(static_cast<const char*>(participant.context->input(0).data()), bytes);
    }
    AllReplicaValues all;
    TF_RETURN_IF_ERROR(CallPython<GatherInstancesCall>(values, &all));
    if (all.values.value.size() != bytes * replicas_ * instances_) {
      return errors::InvalidArgument(name(), ": the ", instances_, " instances do not all have ", replicas_, " replicas");
    }
    std::map<int64_t, Tensor> by_group;
    for (int64_t place = 0; place < replicas_; ++place) {
      const int64_t group = (instance_ * replicas_ + place) / group_size_;
      if (by_group.count(group) == 0) {
        OpKernelContext* const own = rendezvous.participants[place].context;
        TF_RETURN_IF_ERROR(OfGroup(own, all.values.value.data() + group * group_size_ * bytes, &by_group[group]));
      }
      results->push_back(by_group[group]);
    }
    return OkStatus();
  }

  // The result of a group of replicas, whose values follow one another.
  Status OfGroup(OpKernelContext* context, const char* values, Tensor* result) {
    const Tensor& own = context->input(0);
    TensorShape shape = own.shape();
    if (kind_ == "gather") TF_RETURN_IF_ERROR(AddReplicas(group_size_, &shape));
    TF_RETURN_IF_ERROR(context->allocate_temp(own.dtype(), shape, result));
    if (result->TotalBytes() == 0) return OkStatus();
    if (kind_ == "gather") {
      std::memcpy(result->data(), values, result->TotalBytes());
      return OkStatus();
    }
    std::vector<const char*> given;
    for (int64_t place = 0; place < group_size_; ++place) given.push_back(values + place * own.TotalBytes());
    return Add(context, given, {*result});
  }

  // Each result overwrites its replica's input if only this op uses the input. Later ops then also work in place, and
  // no memory is allocated. Replicas whose input has other uses share one new result.
  static Status Sum(OpKernelContext* context, const ReplicaRendezvous& rendezvous, std::vector<Tensor>* results) {
    std::vector<Tensor> distinct;
    std::vector<size_t> which;
    constexpr size_t kNone = -1;
    size_t shared = kNone;
    for (const ReplicaRendezvous::Participant& participant : rendezvous.participants) {
      OpKernelContext* const own = participant.context;
      const Tensor& value = own->input(0);
      const std::unique_ptr<Tensor> place = own->forward_input(0, OpKernelContext::Params::kNoReservation, value.dtype(),
                                                               value.shape(), DEVICE_MEMORY, AllocatorAttributes());
      if (place != nullptr) {
        which.push_back(distinct.size());
        distinct.push_back(*place);
        continue;
      }
      if (shared == kNone) {
        Tensor made;
        TF_RETURN_IF_ERROR(own->allocate_temp(value.dtype(), value.shape(), &made));
        shared = distinct.size();
        distinct.push_back(made);
      }
      which.push_back(shared);
    }
    std::vector<const char*> values;
    for (const ReplicaRendezvous::Participant& participant : rendezvous.participants) {
      values.push_back(static_cast<const char*>(participant.context->input(0).data()));
    }
    TF_RETURN_IF_ERROR(Add(context, values, distinct));
    for (const size_t place : which) results->push_back(distinct[place]);
    return OkStatus();
  }

  static void ClipOverflows(OpKernelContext* context, const std::vector<Tensor>& sums) {
    const IpuDevice* const device = AsIpuDevice(context->function_library()->device());
    if (device == nullptr) return;
    for (Tensor sum : sums) ClipSum(&sum, device->ordinal());
  }

  static Status Add(OpKernelContext* context, const std::vector<const char*>& values,
                    const std::vector<Tensor>& results) {
    switch (results[0].dtype()) {
#define TF_IPU_SUM(T)                      \
  case DataTypeToEnum<T>::value:           \
    SumInto<T>(context, values, results);  \
    return OkStatus();
      case DT_HALF:
        SumInto<Eigen::half>(context, values, results);
        ClipOverflows(context, results);
        return OkStatus();
      TF_CALL_bfloat16(TF_IPU_SUM) TF_CALL_float(TF_IPU_SUM) TF_CALL_double(TF_IPU_SUM) TF_CALL_int32(TF_IPU_SUM)
          TF_CALL_int64(TF_IPU_SUM) TF_CALL_uint32(TF_IPU_SUM) TF_CALL_uint8(TF_IPU_SUM) TF_CALL_int8(TF_IPU_SUM)
              TF_CALL_complex64(TF_IPU_SUM)
#undef TF_IPU_SUM
      default:
        return errors::Unimplemented("A sum over replicas cannot take ", DataTypeString(results[0].dtype()),
                                     ". Cast to float32 first.");
    }
  }

  // A ring: each replica passes on all parts but its own, once to reduce and once to spread the result. Bytes that
  // leave this instance go to no IPU of its device.
  void CountExchange(OpKernelContext* context, int64_t bytes) {
    IpuDevice* device = AsIpuDevice(context->function_library()->device());
    if (device == nullptr || group_size_ < 2) return;
    const int64_t passed = kind_ == "sum" ? 2 * bytes * (group_size_ - 1) / group_size_
                                          : bytes * (group_size_ - 1) / group_size_;
    const int64_t first = replica_ - replica_ % participants_;
    const int64_t shard = chip_ % shards_;
    for (int64_t place = 0; place < (instances_ > 1 ? participants_ - 1 : participants_); ++place) {
      const int64_t next = (place + 1) % participants_;
      CountersOf(device->ordinal())
          .exchange[(first + place) * shards_ + shard][(first + next) * shards_ + shard]
          .Add(passed);
    }
  }

  string kind_, run_group_, among_instances_;
  int64_t rendezvous_ = 0, replica_ = 0, replicas_ = 1, group_size_ = 1, shards_ = 1, chip_ = 0, participants_ = 1;
  int64_t instances_ = 1, instance_ = 0;
};

REGISTER_KERNEL_BUILDER(Name("IpuCrossReplicaSum").Device("CPU"), SingleReplicaSumOp);
REGISTER_KERNEL_BUILDER(Name("IpuReplicaGather").Device("CPU"), SingleReplicaGatherOp);
REGISTER_KERNEL_BUILDER(Name("ReplicationIndex").Device("CPU"), ReplicaConstantOp<0>);
REGISTER_KERNEL_BUILDER(Name("IpuReplicationFactor").Device("CPU"), ReplicaConstantOp<1>);
REGISTER_KERNEL_BUILDER(Name("IpuCollective").Device(kDeviceType), CollectiveOp);

}  // namespace
}  // namespace tf_ipu_shim
