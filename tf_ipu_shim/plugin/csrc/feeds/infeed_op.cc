// `IpuInfeedDequeue`: dequeues an element of an infeed. With several replicas, replica r gets the elements r, r +
// replicas, ... in whichever order the replicas ask. The op reads one row (one element per replica) from the dataset at
// a time, and keeps the elements of the other replicas. So the dataset ends for all replicas after the same iteration.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/arena.h"
#include "feeds/dataset_op.h"
#include "feeds/infeed_source.h"
#include "kernels/output_shapes.h"
#include "programs/program_runs.h"
#include "replicas/wait_limit.h"
#include "tensorflow/core/common_runtime/input_colocation_exemption_registry.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/kernels/data/iterator_ops.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

REGISTER_OP("IpuInfeedDequeue")
    .Input("iterators: N * resource")
    .Output("components: output_types")
    .Attr("N: int >= 0 = 0")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    // The IPU that receives the elements.
    .Attr("chip: int >= 0 = 0")
    .Attr("replica: int >= 0 = 0")
    .Attr("replicas: int >= 1 = 1")
    .Attr("run_group: string = ''")
    .SetIsStateful()
    .SetShapeFn(SetOutputShapesFromAttribute);
// Runs on the IPU's device, whose kernels find the iterator on the host: without soft placement TensorFlow cannot colocate
// the two.
REGISTER_INPUT_COLOCATION_EXEMPTION("IpuInfeedDequeue");

// Distributes the elements of one iterator over the replicas of a run.
class ReplicaElementQueue {
 public:
  Status Next(OpKernelContext* context, data::IteratorResource* iterator, const InfeedSource& source,
              const ReplicaOfProgram& replica, std::vector<Tensor>* element) {
    const int64_t index = replica.index();
    std::unique_lock<std::mutex> lock(mutex_);
    // A new run begins with the dataset's next element: leftovers of a failed run are never used. Runs of programs that
    // share the infeed may overlap.
    const std::shared_ptr<Run> run = RunOf(replica);
    if (run->waiting[index].empty() && run->failure.ok()) run->failure = TakeRow(context, iterator, source, run.get());
    if (run->waiting[index].empty()) return End(context, *run, &lock);
    *element = std::move(run->waiting[index].front());
    run->waiting[index].pop_front();
    return OkStatus();
  }

 private:
  static constexpr size_t kMostRuns = 64;  // more than run at a time

  struct Run {
    std::vector<std::deque<std::vector<Tensor>>> waiting;  // by replica
    Status failure;    // how the dataset has ended for this run
    size_t ended = 0;  // replicas that have come to that
  };

  std::shared_ptr<Run> RunOf(const ReplicaOfProgram& replica) {
    const int64_t number = replica.run();
    if (runs_.count(number) == 0) {
      if (runs_.size() >= kMostRuns) runs_.erase(runs_.begin());  // the oldest
      runs_[number] = std::make_shared<Run>();
      runs_[number]->waiting.resize(replica.count());
    }
    return runs_[number];
  }

  // An element for each replica. A row that the dataset does not fill is dropped.
  Status TakeRow(OpKernelContext* context, data::IteratorResource* iterator, const InfeedSource& source, Run* run) {
    std::vector<std::vector<Tensor>> row(run->waiting.size());
    for (std::vector<Tensor>& element : row) {
      bool end = false;
      TF_RETURN_IF_ERROR(source.Next(context, iterator, &element, &end));
      if (end) return source.End();
    }
    for (size_t replica = 0; replica < row.size(); ++replica) run->waiting[replica].push_back(std::move(row[replica]));
    return OkStatus();
  }

  // Reports the dataset's end or error after every replica has reached it. The error of one replica cancels the others,
  // which may still be an iteration behind. Only the op's thread waits here.
  Status End(OpKernelContext* context, Run& run, std::unique_lock<std::mutex>* lock) {
    const Status failure = run.failure;
    if (++run.ended >= run.waiting.size()) {
      everybody_.notify_all();
      return failure;
    }
    CancellationManager* const manager = context->cancellation_manager();
    bool cancelled = false;
    const CancellationToken token = manager->get_cancellation_token();
    lock->unlock();
    const bool registered = manager->RegisterCallback(token, [this, &cancelled] {
      std::lock_guard<std::mutex> lock(mutex_);
      cancelled = true;
      everybody_.notify_all();
    });
    lock->lock();
    everybody_.wait_for(*lock, WaitLimit(), [&] {
      return !registered || cancelled || run.ended >= run.waiting.size();
    });
    lock->unlock();
    manager->DeregisterCallback(token);
    return failure;
  }

  std::mutex mutex_;  // guards all below
  std::condition_variable everybody_;
  std::map<int64_t, std::shared_ptr<Run>> runs_;  // by number
};

// The queue of an iterator, owned by the ops that use it.
std::shared_ptr<ReplicaElementQueue> ReplicaElementQueueOf(const void* iterator) {
  static auto* mutex = new tensorflow::mutex;
  static auto* dealers = new std::map<const void*, std::weak_ptr<ReplicaElementQueue>>;
  mutex_lock lock(*mutex);
  for (auto known = dealers->begin(); known != dealers->end();) {
    known = known->second.expired() && known->first != iterator ? dealers->erase(known) : std::next(known);
  }
  std::shared_ptr<ReplicaElementQueue> dealer = (*dealers)[iterator].lock();
  if (dealer == nullptr) (*dealers)[iterator] = dealer = std::make_shared<ReplicaElementQueue>();
  return dealer;
}

class InfeedDequeueOp : public DatasetOp {
 public:
  explicit InfeedDequeueOp(OpKernelConstruction* context) : DatasetOp(context) {
    OP_REQUIRES_OK(context, source_.Init(context));
    OP_REQUIRES_OK(context, context->GetAttr("chip", &chip_));
    OP_REQUIRES(context, chip_ < kMaxChips, errors::InvalidArgument(name(), ": there is no IPU ", chip_));
    OP_REQUIRES_OK(context, replica_.Init(context));
  }

 protected:
  Status DoCompute(OpKernelContext* context) override {
    core::RefCountPtr<data::IteratorResource> iterator;
    TF_RETURN_IF_ERROR(source_.Find(context, replica_.count(), &iterator));
    std::vector<Tensor> element;
    if (replica_.count() == 1) {
      bool end = false;
      TF_RETURN_IF_ERROR(source_.Next(context, iterator.get(), &element, &end));
      if (end) return source_.End();
    } else {
      TF_RETURN_IF_ERROR(ReplicaElementQueueFor(iterator.get())
                             ->Next(context, iterator.get(), source_, replica_, &element));
    }
    TF_RETURN_IF_ERROR(CheckElement(name(), element, output_types()));
    for (size_t i = 0; i < element.size(); ++i) {
      Tensor copy;
      TF_RETURN_IF_ERROR(CopyToIpu(context, chip_, element[i], &copy));
      context->set_output(i, copy);
    }
    return OkStatus();
  }

 private:
  std::shared_ptr<ReplicaElementQueue> ReplicaElementQueueFor(const void* iterator) {
    mutex_lock lock(mutex_);
    if (seen_ != iterator) {
      seen_ = iterator;
      queue_ = ReplicaElementQueueOf(iterator);
    }
    return queue_;
  }

  InfeedSource source_;
  int64_t chip_ = 0;
  ReplicaOfProgram replica_;
  mutex mutex_;
  const void* seen_ TF_GUARDED_BY(mutex_) = nullptr;
  std::shared_ptr<ReplicaElementQueue> queue_ TF_GUARDED_BY(mutex_);
};

REGISTER_KERNEL_BUILDER(Name("IpuInfeedDequeue").Device("CPU"), InfeedDequeueOp);

}  // namespace
}  // namespace tf_ipu_shim
