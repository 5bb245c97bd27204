// What an `IpuProgram` runs as, for one configuration and one set of argument shapes.
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
#include "process/trace.h"

namespace tf_ipu_shim {

// A session on a server drops its graphs, and the function library of each, in any order, and the kernels that they share
// with the last: a kernel that calls functions would then give its handles back to a library that is gone. There it is
// kept until the process ends.
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
  // Makes what the lowering answered (`CheckAnswer` has passed). `start_micros`: when the lowering began; `epoch`: the
  // configuration it was made for.
  static tensorflow::Status Make(tensorflow::OpKernelContext* context, const IpuDevice& device, ProgramAnswer answer,
                                 int graph_def_version, int64_t epoch, int64_t start_micros,
                                 std::unique_ptr<LoweredProgram>* program);

  // Whether it was lowered for this configuration and arguments of these shapes; XLA's programs have fixed ones.
  bool Fits(tensorflow::OpKernelContext* context, int64_t epoch) const;

  // A variable is created on the TensorFlow device, before anybody knows which chip will use it. When the program is
  // loaded its value moves to that chip's memory, as weights are uploaded to the real one.
  tensorflow::Status BringVariablesHome(tensorflow::OpKernelContext* context, const IpuDevice& device);

  // The inputs in the order of its kernel. The call keeps them while the kernel runs.
  struct Inputs {
    std::deque<VariableAlias> aliases;  // of variables that were made on another device
    std::vector<tensorflow::TensorValue> values;
    std::vector<tensorflow::AllocatorAttributes> attributes;
  };
  // The inputs in that order, the variables of further replicas behind them; null where they are the program's own.
  tensorflow::Status Reorder(tensorflow::OpKernelContext* context, const IpuDevice& device,
                             std::shared_ptr<Inputs>* reordered) const;

  // Around each run. `BeforeRun` gives the watch over the first one, null for all others.
  std::shared_ptr<CompileWatch> BeforeRun(tensorflow::OpKernelContext* context, const IpuDevice& device);
  void AfterRun(tensorflow::OpKernelContext* context, const IpuDevice& device,
                const std::shared_ptr<CompileWatch>& first_run, int64_t start_micros);
  // The time where runs are logged, else 0: what `AfterRun` takes.
  int64_t StartTime() const { return run_log_.StartTime(); }

  // Begins a run once it may: at once, where the program has neither replicas nor feeds. `Leave` ends it. A step that is
  // cancelled before that is refused instead.
  void Enter(tensorflow::OpKernelContext* context, std::function<void()> run, std::function<void()> refuse);
  void Leave();

  // Whether Graphcore would compile an engine for it: it does more than give constants or hand on its arguments.
  bool compiles() const { return compiles_; }
  tensorflow::OpKernel* kernel() const { return kernel_.get(); }
  // Whether its ops run one after the other, and so gain nothing from another thread.
  bool runs_on_one_thread() const { return runs_on_one_thread_; }
  // What a run would send to outfeeds; known where programs are compiled and not run.
  const std::vector<SentElements>& sent() const { return sent_; }
  // Likewise the shapes of its results.
  const std::vector<tensorflow::TensorShapeProto>& result_shapes() const { return result_shapes_; }

 private:
  explicit LoweredProgram(int64_t epoch) : epoch_(epoch) {}

  void TakeCompilation(CompilationMessage compilation, int64_t start_micros);
  EngineTrace::Buffers BuffersOf(tensorflow::OpKernelContext* context, const std::vector<int32_t>& inputs) const;

  const int64_t epoch_;
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
  std::shared_ptr<const ProgramEvents> events_;  // null where none are wanted
  std::atomic<bool> ran_{true};                  // false while there is a watch for the first run that succeeds
  std::shared_ptr<CompileWatch> first_run_;      // taken by the run that sets `ran_`
  RunLog run_log_;
};

}  // namespace tf_ipu_shim
