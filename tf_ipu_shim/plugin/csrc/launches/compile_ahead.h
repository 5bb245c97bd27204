// Compiles an XLA launch on another thread, so that Ctrl-C need not wait. Otherwise XLA would compile inside the
// launch's kernel at its first run, for seconds or minutes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// The background compilation of one kernel. Its copies of the launch's inputs outlive the step. TensorFlow's device,
// function library and executable cache belong to the session or eager context. That outlives its kernels, because the
// destructor waits.
class CompileAhead {
 public:
  // Runs the kernel of the launch in a context until it ends.
  using Launch = std::function<void(tensorflow::OpKernelContext*)>;

  CompileAhead() = default;
  ~CompileAhead();
  CompileAhead(const CompileAhead&) = delete;
  CompileAhead& operator=(const CompileAhead&) = delete;

  // Waits until the launch is compiled or has failed: TensorFlow's cache then has the executable or XLA's error. Only
  // the first run of a kernel is compiled ahead.
  //
  // Returns an error if Ctrl-C or the end of the step comes first. The compilation continues, and the kernel's next run
  // waits for it.
  tensorflow::Status Wait(tensorflow::OpKernelContext* context, const Launch& launch);

 private:
  bool Begin(tensorflow::OpKernelContext* context, const Launch& launch);
  void Leave();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  bool began_ = false, left_ = false;
  std::atomic<bool> over_{false};
};

// Whether this thread compiles ahead. Its launch must stop before it runs, at its first allocation.
bool CompilesAhead();

// The number of compilations that no step waits for any more.
int PendingCompilations();

}  // namespace tf_ipu_shim
