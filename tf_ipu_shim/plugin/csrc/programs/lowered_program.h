// The lowered form of an `IpuProgram`, for one configuration and one set of argument shapes.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launches/compile_watch.h"
#include "device/device.h"
#include "protocol/program_messages.h"
#include "programs/program_runs.h"
#include "replicas/replica_variables.h"
#include "programs/run_log.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/status.h"
#include "user_ops/poplar_bridge.h"
#include "process/trace.h"

namespace tf_ipu_shim {

// A session on a server drops its graphs, their function libraries and the shared kernels in any order. A kernel that
// calls functions could then return its handles to a deleted library. So a server keeps the kernel until the process
// ends.
class KernelDeleter {
 public:
  KernelDeleter() = default;
  explicit KernelDeleter(bool keeps) : keeps_(keeps) {}
  void operator()(tensorflow::OpKernel* kernel) const {
    if (!keeps_) delete kernel;
  }

 private:
  bool keeps_ = false;
};
using KernelPointer = std::unique_ptr<tensorflow::OpKernel, KernelDeleter>;

class LoweredProgram {
 public:
  // Builds the program from a validated answer. `start_micros`: when the lowering began; `epoch`: its configuration.
  static tensorflow::Status Make(tensorflow::OpKernelContext* context, const IpuDevice& device, ProgramAnswer answer,
                                 int graph_def_version, int64_t epoch, int64_t start_micros,
                                 std::unique_ptr<LoweredProgram>* program);

  // Whether it was lowered for this configuration and these argument shapes; XLA programs have fixed shapes.
  bool Fits(tensorflow::OpKernelContext* context, int64_t epoch) const;

  // A variable is created on the TensorFlow device, before it is known which chip will use it. When the program is
  // loaded its value moves to that chip's memory, as weights are uploaded to the real one.
  tensorflow::Status MoveVariablesToChips(tensorflow::OpKernelContext* context, const IpuDevice& device);

  // The inputs in the order of the program's kernel. The call keeps them alive while the kernel runs.
  struct Inputs {
    std::deque<VariableAlias> aliases;  // of variables that were made on another device
    std::vector<tensorflow::TensorValue> values;
    std::vector<tensorflow::AllocatorAttributes> attributes;
  };
  // Orders the inputs for the kernel and appends the variables of further replicas.
  tensorflow::Status Reorder(tensorflow::OpKernelContext* context, const IpuDevice& device,
                             std::shared_ptr<Inputs>* reordered) const;

  // Called before and after each run. `PrepareRun` returns the compile watch of the first run, null for the others.
  std::shared_ptr<CompileWatch> PrepareRun(tensorflow::OpKernelContext* context, const IpuDevice& device);
  void FinishRun(tensorflow::OpKernelContext* context, const IpuDevice& device,
                 const std::shared_ptr<CompileWatch>& first_run, int64_t start_micros);
  // The time if runs are logged, else 0: the argument of `FinishRun`.
  int64_t StartTime() const { return run_log_.StartTime(); }

  // Starts a run when no other is in flight, or at once if the program has neither replicas nor feeds. `Leave` ends it.
  // If the step is cancelled first, calls `refuse` instead.
  void Enter(tensorflow::OpKernelContext* context, std::function<void()> run, std::function<void()> refuse);
  void Leave();

  // Whether Graphcore would compile an engine for it: false if it only returns constants or its arguments.
  bool compiles() const { return compiles_; }
  tensorflow::OpKernel* kernel() const { return kernel_.get(); }
  // Whether its ops run sequentially, so that more threads do not help.
  bool runs_on_one_thread() const { return runs_on_one_thread_; }
  // Elements that a run would enqueue to outfeeds; known if programs are compiled and not run.
  const std::vector<SentElements>& sent() const { return sent_; }
  // The shapes of its results, known in the same case.
  const std::vector<tensorflow::TensorShapeProto>& result_shapes() const { return result_shapes_; }

 private:
  explicit LoweredProgram(int64_t epoch) : epoch_(epoch) {}

  void TakeCompilation(CompilationMessage compilation, int64_t start_micros);
  EngineTrace::Buffers BuffersOf(tensorflow::OpKernelContext* context, const std::vector<int32_t>& inputs) const;

  const int64_t epoch_;
  UserOpsLease user_ops_;  // goes after the kernel
  KernelPointer kernel_;
  std::vector<tensorflow::TensorShape> shapes_;  // per input
  std::vector<int32_t> variable_chips_;          // per input; -1 for what is no variable
  std::vector<std::atomic<const void*>> homes_;  // per input: the buffer last seen in its chip's arena
  std::vector<int32_t> kernel_inputs_;           // for each input of the kernel the program's
  bool same_inputs_ = false;                     // whether these are all inputs in their order
  std::unique_ptr<ReplicaVariables> replicas_;   // null where there is one replica
  std::string run_group_;                        // empty where runs do not wait for each other
  RunGate gate_;
  bool compiles_ = false;
  bool runs_on_one_thread_ = false;
  std::vector<SentElements> sent_;
  std::vector<tensorflow::TensorShapeProto> result_shapes_;
  std::shared_ptr<const TracedEvents> events_;  // null where none are wanted
  std::atomic<bool> ran_{true};                  // false while there is a watch for the first run that succeeds
  std::shared_ptr<CompileWatch> first_run_;      // taken by the run that sets `ran_`
  RunLog run_log_;
};

}  // namespace tf_ipu_shim
