// Serializes the runs of a program with feeds or replicas, as on the real device, and numbers them. Ops identify their
// run by the number: TensorFlow gives each function called within a step its own id.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/mutex.h"

namespace tf_ipu_shim {

// The number of a program's current run, by the program's unique name. The reference stays valid.
std::atomic<int64_t>& RunNumberOf(const std::string& run_group);

// Numbers a new run. Numbers are unique over all programs, because several programs may share an infeed or outfeed.
void BeginRun(const std::string& run_group);

// The replica of a program that an op is part of, from the op's attributes `replica`, `replicas` and `run_group`.
class ReplicaOfProgram {
 public:
  tensorflow::Status Init(tensorflow::OpKernelConstruction* context);
  int64_t index() const { return index_; }
  int64_t count() const { return count_; }
  // The number of the program's current run.
  int64_t run() const { return *run_number_; }

 private:
  int64_t index_ = 0, count_ = 1;
  const std::atomic<int64_t>* run_number_ = nullptr;
};

// Admits one run at a time. A run that leaves starts the next, so that no thread waits.
class RunGate {
 public:
  // Calls `run` when no other run is in flight, or `refuse` if the step is cancelled first.
  void Enter(tensorflow::CancellationManager* cancellation, std::function<void()> run, std::function<void()> refuse);
  void Leave();

 private:
  struct Waiting {
    tensorflow::CancellationManager* cancellation;
    tensorflow::CancellationToken token;
    std::function<void()> run;
  };
  // Removes a waiting run; false if it was already admitted.
  bool Remove(const tensorflow::CancellationManager* cancellation, tensorflow::CancellationToken token);

  tensorflow::mutex mutex_;
  bool busy_ TF_GUARDED_BY(mutex_) = false;
  std::deque<Waiting> waiting_ TF_GUARDED_BY(mutex_);
};

}  // namespace tf_ipu_shim
