// XLA compiles a launch when it first runs, in the launch's kernel, for seconds or minutes. Here another thread has it
// compiled, so that Ctrl-C can leave the thread behind.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Of one kernel. Its copies of what the launch takes outlive the step; TensorFlow's device, function library and cache of
// executables belong to the session or eager context, which outlives its kernels: destroying this waits.
class CompileAhead {
 public:
  // Runs the kernel of the launch in a context until it ends.
  using Launch = std::function<void(tensorflow::OpKernelContext*)>;

  CompileAhead() = default;
  ~CompileAhead();
  CompileAhead(const CompileAhead&) = delete;
  CompileAhead& operator=(const CompileAhead&) = delete;

  // Returns when the launch is compiled, or cannot be: TensorFlow's cache has the executable then, or XLA's error. Only the
  // first run of a kernel is compiled ahead.
  //
  // Returns an error where Ctrl-C, or the end of the step, comes first. The compilation goes on, and the next run of the
  // kernel waits for it.
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

// Whether this thread compiles ahead. Its launch is to stop where it would run: at the first memory that it asks for.
bool CompilesAhead();

// How many compilations go on that no step waits for.
int CompilationsLeftBehind();

}  // namespace tf_ipu_shim
