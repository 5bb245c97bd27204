// Runs of a replicated program: one at a time, as on the real device, and numbered. Its ops tell by the number which run
// they belong to: TensorFlow gives each function called within a step an id of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "tensorflow/core/platform/mutex.h"

namespace tf_ipu_shim {

// The number of the present run of a program, by the name that the lowering gave it. Stays where it is.
std::atomic<int64_t>& RunNumberOf(const std::string& run_group);

// Lets one run in; the others are started by the one that leaves, so that no thread waits.
class RunGate {
 public:
  void Enter(std::function<void()> run);
  void Leave();

 private:
  tensorflow::mutex mutex_;
  bool busy_ TF_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> waiting_ TF_GUARDED_BY(mutex_);
};

}  // namespace tf_ipu_shim
