// Runs a lowered program: creates its kernel, moves its variables, orders its inputs, records its events.
#include "programs/lowered_program.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "device/counters.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor_description.pb.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file makes and runs TensorFlow kernels

Status MakeKernel(OpKernelContext* context, NodeDef node, int graph_def_version, KernelPointer* kernel) {
  const OpDef* op_def = nullptr;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(node.op(), &op_def));
  DataTypeVector input_types, output_types;
  TF_RETURN_IF_ERROR(InOutTypesForNode(node, *op_def, &input_types, &output_types));
  for (size_t i = 0; i < input_types.size(); ++i) node.add_input(strings::StrCat("input:", i));
  const auto properties = std::make_shared<NodeProperties>(op_def, std::move(node), input_types, output_types);
  FunctionLibraryRuntime* runtime = context->function_library();
  Device* device = runtime->device();
  OpKernel* made = nullptr;
  TF_RETURN_IF_ERROR(CreateOpKernel(DeviceType(kDeviceType), device, device->GetAllocator(AllocatorAttributes()),
                                    runtime, device->resource_manager(), properties, graph_def_version, &made));
  *kernel = KernelPointer(made, KernelDeleter(device->parsed_name().job != "localhost"));
  return OkStatus();
}

// Gives results that share one of these buffers separate memory.
void CountOwnedResults(OpKernelContext* context, const IpuDevice& device, const EngineTrace::Buffers& buffers) {
  for (int i = 0; i < context->num_outputs(); ++i) {
    Tensor* const output = context->mutable_output(i);
    if (output == nullptr || output->TotalBytes() == 0 || !DataTypeCanUseMemcpy(output->dtype())) continue;
    if (std::find(buffers.begin(), buffers.end(), output->data()) == buffers.end()) continue;
    Tensor own(ArenaOf(device.ordinal(), 0), output->dtype(), output->shape());
    if (!own.IsInitialized()) return;  // no memory: the trace has a transfer too many
    std::memcpy(own.data(), output->data(), output->TotalBytes());
    *output = own;
  }
}

}  // namespace

Status LoweredProgram::Make(OpKernelContext* context, const IpuDevice& device, ProgramAnswer answer,
                            int graph_def_version, int64_t epoch, int64_t start_micros,
                            std::unique_ptr<LoweredProgram>* program) {
  std::unique_ptr<LoweredProgram> made(new LoweredProgram(epoch));
  for (int i = 0; i < context->num_inputs(); ++i) made->shapes_.push_back(context->input(i).shape());
  made->homes_ = std::vector<std::atomic<const void*>>(made->shapes_.size());
  made->variable_chips_ = std::move(answer.variable_chips);
  made->kernel_inputs_ = std::move(answer.inputs);
  std::vector<int32_t> same(made->shapes_.size());
  std::iota(same.begin(), same.end(), 0);
  made->same_inputs_ = made->kernel_inputs_ == same;
  made->run_group_ = std::move(answer.run_group);
  made->user_ops_ = UserOpsLease(std::move(answer.user_op_target));
  if (!answer.replica_variables.empty()) {
    made->replicas_ = std::make_unique<ReplicaVariables>(std::move(answer.replica_variables));
  }
  TF_RETURN_IF_ERROR(MakeKernel(context, std::move(answer.node), graph_def_version, &made->kernel_));
  const auto executor = made->kernel_->def().attr().find("executor_type");
  made->runs_on_one_thread_ = executor != made->kernel_->def().attr().end() && !executor->second.s().empty();
  DeviceCounters& counters = CountersOf(device.ordinal());
  ++counters.programs_lowered;
  made->sent_ = std::move(answer.sent);
  made->result_shapes_ = std::move(answer.result_shapes);
  made->compiles_ = answer.compilation.has_value();
  if (made->compiles_) {
    ++counters.programs_compiled;
    made->TakeCompilation(std::move(*answer.compilation), start_micros);
  }
  *program = std::move(made);
  return OkStatus();
}

void LoweredProgram::TakeCompilation(CompilationMessage compilation, int64_t start_micros) {
  if (compilation.events.has_value()) {
    events_ = std::make_shared<const TracedEvents>(std::move(*compilation.events));
    RecordEvent(events_->compile_begin, start_micros);
  }
  run_log_.Take(&compilation);
  if (compilation.progress_bar || events_ != nullptr || !compilation.log_line.empty()) {
    first_run_ = CompileWatch::Begin(compilation.module, compilation.launches, compilation.progress_bar,
                                     compilation.log_line, start_micros);
    ran_ = false;
  }
}

bool LoweredProgram::Fits(OpKernelContext* context, int64_t epoch) const {
  if (epoch != epoch_) return false;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (shapes_[i] != context->input(i).shape()) return false;
  }
  return true;
}

Status LoweredProgram::MoveVariablesToChips(OpKernelContext* context, const IpuDevice& device) {
  for (size_t i = 0; i < variable_chips_.size(); ++i) {
    const int32_t chip = variable_chips_[i];
    if (chip < 0) continue;
    core::RefCountPtr<Var> variable;
    // An uninitialised variable is reported by the op that reads it, in TensorFlow's own words.
    if (!FindVariable(context, i, &variable).ok()) continue;
    mutex_lock lock(*variable->mu());
    if (!variable->is_initialized || !variable->tensor()->IsInitialized()) continue;
    Tensor* tensor = variable->tensor();
    const void* const buffer = tensor->data();
    if (buffer == homes_[i].load(std::memory_order_relaxed)) continue;
    Arena* arena = ArenaOf(device.ordinal(), chip);
    TensorDescription description;
    tensor->FillDescription(&description);
    if (tensor->TotalBytes() > 0 && description.allocation_description().allocator_name() != arena->Name()) {
      if (!DataTypeCanUseMemcpy(tensor->dtype())) {
        return errors::InvalidArgument("Variable ", variable->DebugString(), " on ", device.name(), " holds ",
                                       DataTypeString(tensor->dtype()),
                                       ", which an IPU has no memory for. Place it on the CPU.");
      }
      Tensor moved(arena, tensor->dtype(), tensor->shape());
      if (!moved.IsInitialized()) {
        return errors::ResourceExhausted("The host has no memory left for a variable of ", tensor->TotalBytes(),
                                         " bytes on IPU ", chip);
      }
      std::memcpy(moved.data(), tensor->data(), tensor->TotalBytes());
      CountersOf(device.ordinal()).host_to_device.Add(tensor->TotalBytes());
      *tensor = moved;
    }
    homes_[i].store(tensor->data(), std::memory_order_relaxed);
  }
  return replicas_ == nullptr ? OkStatus() : replicas_->Upload(context, device);
}

Status LoweredProgram::Reorder(OpKernelContext* context, const IpuDevice& device,
                               std::shared_ptr<Inputs>* reordered) const {
  std::vector<bool> elsewhere(shapes_.size());
  bool any_elsewhere = false;
  for (size_t input = 0; input < shapes_.size(); ++input) {
    if (variable_chips_[input] < 0 || HandleFromInput(context, input).device() == device.name()) continue;
    elsewhere[input] = any_elsewhere = true;
  }
  if (same_inputs_ && replicas_ == nullptr && !any_elsewhere) return OkStatus();
  auto inputs = std::make_shared<Inputs>();
  const OpKernelContext::Params* params = context->params();
  const auto add = [&](const TensorValue& value, size_t like) {
    inputs->values.push_back(value);
    if (!params->input_alloc_attrs.empty()) inputs->attributes.push_back(params->input_alloc_attrs[like]);
  };
  const auto add_input = [&](size_t input) -> Status {
    if (elsewhere[input]) {
      inputs->aliases.emplace_back();
      TF_RETURN_IF_ERROR(inputs->aliases.back().Make(context, input));
      add(TensorValue(inputs->aliases.back().handle()), input);
    } else {
      add(params->inputs[input], input);
    }
    return OkStatus();
  };
  for (const int32_t input : kernel_inputs_) TF_RETURN_IF_ERROR(add_input(input));
  for (size_t copy = 0; replicas_ != nullptr && copy < replicas_->size(); ++copy) {
    add(replicas_->handle(copy), replicas_->input(copy));
  }
  *reordered = std::move(inputs);
  return OkStatus();
}

void LoweredProgram::Enter(OpKernelContext* context, std::function<void()> run, std::function<void()> refuse) {
  if (run_group_.empty()) {
    run();
    return;
  }
  const auto numbered = [this, run = std::move(run)] {
    BeginRun(run_group_);
    run();
  };
  gate_.Enter(context->cancellation_manager(), numbered, std::move(refuse));
}

void LoweredProgram::Leave() {
  if (!run_group_.empty()) gate_.Leave();
}

std::shared_ptr<CompileWatch> LoweredProgram::PrepareRun(OpKernelContext* context, const IpuDevice& device) {
  if (!ran_.load(std::memory_order_relaxed) && !ran_.exchange(true)) {
    std::shared_ptr<CompileWatch> first_run = std::move(first_run_);
    first_run->ShowBar();
    return first_run;
  }
  if (events_ != nullptr && events_->transfers.has_value()) {
    EngineTraceOf(device.ordinal()).Load(events_, BuffersOf(context, events_->variables), NowMicros());
  }
  return nullptr;
}

void LoweredProgram::FinishRun(OpKernelContext* context, const IpuDevice& device,
                               const std::shared_ptr<CompileWatch>& first_run, int64_t start_micros) {
  const bool succeeded = context->status().ok();
  if (start_micros != 0 && succeeded) run_log_.Add(start_micros);
  if (succeeded && replicas_ != nullptr) replicas_->Keep(context);
  if (first_run != nullptr) {
    first_run->EndBar(succeeded);
    if (succeeded) {
      first_run->LogRun();
    } else {  // such as a variable without a value: the next run is the first
      first_run_ = first_run;
      ran_ = false;
    }
  }
  if (events_ == nullptr || !succeeded) return;
  EngineTrace& engine = EngineTraceOf(device.ordinal());
  const EngineTrace::Buffers variables = BuffersOf(context, events_->variables);
  if (first_run != nullptr) {
    // XLA compiles while the program first runs, so that only now is it known when it was compiled. Events that follow
    // a compilation on a real device are then recorded with that time.
    const int64_t compiled = first_run->end_micros();
    RecordEvent(events_->compile_end, compiled, first_run->compile_micros());
    if (events_->transfers.has_value()) engine.Load(events_, variables, compiled);
  }
  // A kernel's result may share a variable's memory, and would be mistaken for the variable when the host reads it.
  if (events_->transfers.has_value()) CountOwnedResults(context, device, variables);
  engine.OnProgramEnd(events_, variables, BuffersOf(context, events_->written), NowMicros());
}

EngineTrace::Buffers LoweredProgram::BuffersOf(OpKernelContext* context, const std::vector<int32_t>& inputs) const {
  EngineTrace::Buffers buffers;
  for (const int32_t input : inputs) {
    core::RefCountPtr<Var> variable;
    if (!FindVariable(context, input, &variable).ok()) continue;
    tf_shared_lock lock(*variable->mu());
    if (variable->is_initialized) buffers.push_back(variable->tensor()->data());
  }
  return buffers;
}

}  // namespace tf_ipu_shim
