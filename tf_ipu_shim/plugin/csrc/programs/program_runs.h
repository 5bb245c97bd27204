// Runs of a program with feeds or replicas: one at a time, as on the real device, and numbered. Its ops tell by the number
// which run they belong to: TensorFlow gives each function called within a step an id of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/platform/mutex.h"

namespace tf_ipu_shim {

// The number of the present run of a program, by the name that the lowering gave it. Stays where it is.
std::atomic<int64_t>& RunNumberOf(const std::string& run_group);

// Gives the present run of a program a number that no run of any program had: several may share an infeed or outfeed.
void BeginRun(const std::string& run_group);

// Lets one run in; the others are started by the one that leaves, so that no thread waits.
class RunGate {
 public:
  // Calls `run` once nobody else is in, or `refuse` where the step is cancelled before that.
  void Enter(tensorflow::CancellationManager* cancellation, std::function<void()> run, std::function<void()> refuse);
  void Leave();

 private:
  struct Waiting {
    tensorflow::CancellationManager* cancellation;
    tensorflow::CancellationToken token;
    std::function<void()> run;
  };
  // Takes one that waits out; false where it is in already.
  bool Remove(const tensorflow::CancellationManager* cancellation, tensorflow::CancellationToken token);

  tensorflow::mutex mutex_;
  bool busy_ TF_GUARDED_BY(mutex_) = false;
  std::deque<Waiting> waiting_ TF_GUARDED_BY(mutex_);
};

}  // namespace tf_ipu_shim
