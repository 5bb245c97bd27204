// `IpuProgram`: the op in the user's graph that runs a traced function on IPUs. It is lowered at its first run, because
// TensorFlow 1 scripts often configure the system after they have built, even finalized, the graph.
#include <memory>
#include <utility>
#include <vector>

#include "launches/added_functions.h"
#include "launches/compile_errors.h"
#include "device/counters.h"
#include "device/device.h"
#include "device/first_use.h"
#include "feeds/in_flight.h"
#include "programs/lowered_program.h"
#include "programs/lowering_call.h"
#include "feeds/outfeeds.h"
#include "kernels/output_shapes.h"
#include "programs/program_answer.h"
#include "programs/program_request.h"
#include "process/trace.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

REGISTER_OP("IpuProgram")
    .Input("args: Tin")
    .Output("output: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("function: string")
    // The function and all it calls, as a serialised FunctionDefLibrary. In the graph's own library, grappler would
    // rewrite them for op-by-op execution (lowered loops, fused kernels), and XLA could not compile them. It is empty
    // if `function` is in the runtime's library: a jit-compiled call, which grappler does not change.
    .Attr("library: string = ''")
    .Attr("output_shapes: list(shape) >= 0 = []")
    // Whether the function is one op of the graph, which cannot run by itself.
    .Attr("single_op: bool = false")
    // The TensorFlow device it was made for, -1 if it was not given: soft placement moves ops whose device is not
    // there.
    .Attr("device_ordinal: int = -1")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* context) {
      std::vector<PartialTensorShape> shapes;
      TF_RETURN_IF_ERROR(context->GetAttr("output_shapes", &shapes));
      return shapes.empty() ? shape_inference::UnknownShape(context) : SetOutputShapesFromAttribute(context);
    });

class IpuProgramOp : public AsyncOpKernel {
 public:
  explicit IpuProgramOp(OpKernelConstruction* context)
      : AsyncOpKernel(context), graph_def_version_(context->graph_def_version()) {
    OP_REQUIRES_OK(context, context->GetAttr("function", &function_));
    string library;
    OP_REQUIRES_OK(context, context->GetAttr("library", &library));
    OP_REQUIRES(context, library_.ParseFromString(library),
                errors::InvalidArgument("IpuProgram ", name(), " holds no readable function library"));
    OP_REQUIRES_OK(context, context->GetAttr("output_shapes", &output_shapes_));
    OP_REQUIRES_OK(context, context->GetAttr("device_ordinal", &device_ordinal_));
    OP_REQUIRES_OK(context, context->GetAttr("single_op", &single_op_));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    IpuDevice* device = AsIpuDevice(context->function_library()->device());
    OP_REQUIRES_ASYNC(context, device != nullptr,
                      errors::FailedPrecondition("IpuProgram ", name(), " is placed on ",
                                                 context->function_library()->device()->name(), ", not on an IPU"),
                      done);
    OP_REQUIRES_ASYNC(context, device_ordinal_ < 0 || device_ordinal_ == device->ordinal(),
                      errors::InvalidArgument("Program ", name(), " is made for /device:IPU:", device_ordinal_,
                                              ", which is not configured: there are ", DeviceCount(),
                                              " IPU devices. Give IPUConfig.auto_select_ipus one entry for each."),
                      done);
    LoweredProgram* program = nullptr;
    if (const Status lowered = Lowered(context, *device, &program); !lowered.ok()) {
      context->SetStatus(lowered);  // without a line in the log: the script is told
      done();
      return;
    }
    if (!IsAttached(device->ordinal()) && program->compiles()) {
      Use use = Use::kRun;
      OP_REQUIRES_OK_ASYNC(context, FindDeviceUse(device->ordinal(), true, &use), done);
      OP_REQUIRES_ASYNC(context, use != Use::kCompileOnly, CompileOnlyError(*this), done);
      if (use == Use::kZeros) {
        OP_REQUIRES_OK_ASYNC(context, OutputZeros(context, *program), done);
        for (const SentElements& sent : program->sent()) {
          Outfeeds::Get().Of(sent.feed_id)->PutZeros(sent.rows, sent.replicas);
        }
        done();
        return;
      }
    }
    if (device->BelongsToParentProcess() &&
        program->compiles()) {  // also where it is short: its kernels may share their work out
      context->SetStatus(errors::FailedPrecondition(
          "Program ", name(), " cannot run in this process. It was forked from one that had used ", device->name(),
          ", and has none of the threads that TensorFlow started there. Fork before TensorFlow is used, or start ",
          "processes anew: multiprocessing.get_context('spawn')."));
      done();
      return;
    }
    const auto refuse = [this, context, done] {
      context->SetStatus(errors::Cancelled("Program ", name(), " was cancelled while it waited for another run of it"));
      done();
    };
    program->Enter(context, [this, context, device, program, done] { Run(context, *device, *program, done); }, refuse);
  }

 private:
  void Run(OpKernelContext* context, IpuDevice& device, LoweredProgram& program, const DoneCallback& done) {
    Status ready = program.MoveVariablesToChips(context, device);
    const auto inputs = context->params()->inputs;
    const auto attributes = context->params()->input_alloc_attrs;
    std::shared_ptr<LoweredProgram::Inputs> reordered;
    if (ready.ok()) ready = program.Reorder(context, device, &reordered);
    if (!ready.ok()) {
      context->SetStatus(ready);
      program.Leave();
      done();
      return;
    }
    ++CountersOf(device.ordinal()).programs_run;
    std::shared_ptr<CompileWatch> first_run = program.PrepareRun(context, device);
    const int64_t start_micros = program.StartTime();
    // The program reuses this op's context: its inputs in another order, the same outputs.
    OpKernelContext::Params* const params = context->params();
    if (reordered != nullptr) {
      params->inputs = reordered->values;
      params->input_alloc_attrs = reordered->attributes;
    }
    OpKernel* const kernel = program.kernel();
    params->op_kernel = kernel;
    // A program that fails cancels its remaining ops. Were that the step's own manager, TensorFlow would take the error
    // for a consequence of the cancellation and drop it.
    CancellationManager* const outer = params->cancellation_manager;
    auto* const inner = new CancellationManager(outer);
    params->cancellation_manager = inner;
    // TensorFlow 2.15.1 starts the single-threaded executor on this thread. TensorFlow 2.21.0 starts it on a thread of
    // the runner, which takes as long as a short program.
    static auto* const run_here = new std::function<void(std::function<void()>)>(
        [](const std::function<void()>& work) { work(); });
    std::function<void(std::function<void()>)>* const runner = params->runner;
    if (program.runs_on_one_thread()) params->runner = run_here;
    ProgramStarts(device.ordinal());
    auto finish = [this, context, &device, &program, outer, inner, runner, inputs, attributes,
                   reordered = std::move(reordered), first_run = std::move(first_run), start_micros, done]() {
      OpKernelContext::Params* const params = context->params();
      params->op_kernel = this;
      params->runner = runner;
      params->inputs = inputs;
      params->input_alloc_attrs = attributes;
      params->cancellation_manager = outer;
      delete inner;
      if (!context->status().ok()) ExplainCompileError(context);
      program.FinishRun(context, device, first_run, start_micros);
      ProgramEnds(device.ordinal());
      program.Leave();
      done();
    };
    if (AsyncOpKernel* async = kernel->AsAsync()) {
      device.ComputeAsync(async, context, std::move(finish));
    } else {
      device.Compute(kernel, context);
      finish();
    }
  }

  Status Lowered(OpKernelContext* context, const IpuDevice& device, LoweredProgram** program) {
    mutex_lock lock(mutex_);
    const int64_t epoch = CurrentEpoch(device.ordinal());
    for (auto known = programs_.rbegin(); known != programs_.rend(); ++known) {
      if (!known->lowered->Fits(context, epoch)) continue;
      *program = known->lowered.get();
      return AddToLibrary(context->function_library(), &*known);
    }
    const int64_t start_micros = NowMicros();
    ProgramRequest request;
    ProgramAnswer answer;
    TF_RETURN_IF_ERROR(MakeRequest(context, device.ordinal(), function_, library_, &request));
    request.single_op = single_op_;
    bool in_eager_context = false;
    TF_RETURN_IF_ERROR(Lower(context->function_library(), request, &answer, &in_eager_context));
    TF_RETURN_IF_ERROR(CheckAnswer(context, answer));
    Program fresh;
    fresh.functions = std::move(answer.functions);
    if (in_eager_context) {
      fresh.added = AddedFunctions(LibraryOf(context->function_library()), fresh.functions, library_);
    }
    TF_RETURN_IF_ERROR(AddToLibrary(context->function_library(), &fresh));
    TF_RETURN_IF_ERROR(LoweredProgram::Make(context, device, std::move(answer), graph_def_version_, epoch,
                                            start_micros, &fresh.lowered));
    *program = fresh.lowered.get();
    programs_.push_back(std::move(fresh));
    return OkStatus();
  }

  struct Program {
    AddedFunctions added;  // goes last
    std::unique_ptr<LoweredProgram> lowered;
    std::vector<FunctionDef> functions;
    std::vector<const FunctionLibraryRuntime*> known_to;
  };

  // A session keeps one kernel of this op, but has a function library for every set of fetches.
  Status AddToLibrary(FunctionLibraryRuntime* runtime, Program* program) const {
    for (const FunctionLibraryRuntime* known : program->known_to) {
      if (known == runtime) return OkStatus();
    }
    TF_RETURN_IF_ERROR(AddFunctions(runtime, program->functions));
    program->known_to.push_back(runtime);
    return OkStatus();
  }

  // The results of Graphcore's driver if programs are only compiled ahead of time.
  Status OutputZeros(OpKernelContext* context, const LoweredProgram& program) {
    const std::vector<TensorShapeProto>& known = program.result_shapes();
    for (int i = 0; i < num_outputs(); ++i) {
      PartialTensorShape declared;
      if (i < static_cast<int>(known.size())) {
        TF_RETURN_IF_ERROR(PartialTensorShape::BuildPartialTensorShape(known[i], &declared));
      } else if (i < static_cast<int>(output_shapes_.size())) {
        declared = output_shapes_[i];
      }
      TensorShape shape;
      if (!declared.AsTensorShape(&shape)) {
        return errors::Unimplemented("Result ", i, " of ", name(), " has no shape that can be told without a run, so ",
                                     "that under DeviceConnectionType.PRE_COMPILE no zeros can be given for it. Return ",
                                     "tensors whose shapes depend on shapes alone.");
      }
      Tensor* output = nullptr;
      TF_RETURN_IF_ERROR(context->allocate_output(i, shape, &output));
    }
    return ZeroOutputs(context);
  }

  const int graph_def_version_;
  string function_;
  FunctionDefLibrary library_;
  std::vector<PartialTensorShape> output_shapes_;
  int64_t device_ordinal_ = -1;
  bool single_op_ = false;
  mutex mutex_;
  // Kept until the op is deleted: once a run calls `done` the session may be gone, and a kernel must not outlive it.
  std::vector<Program> programs_ TF_GUARDED_BY(mutex_);
};

REGISTER_KERNEL_BUILDER(Name("IpuProgram").Device(kDeviceType), IpuProgramOp);

}  // namespace
}  // namespace tf_ipu_shim
