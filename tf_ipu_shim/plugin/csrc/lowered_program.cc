#include "lowered_program.h"

#include <cstring>

#include "counters.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor_description.pb.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file makes and runs TensorFlow kernels

Status MakeKernel(OpKernelContext* context, NodeDef node, const std::vector<int32_t>& input_order,
                  size_t replica_variables, int graph_def_version, std::unique_ptr<OpKernel>* kernel) {
  const OpKernel& program = context->op_kernel();
  DataTypeVector input_types(program.input_types());
  if (!input_order.empty()) {
    input_types.clear();
    for (const int32_t input : input_order) input_types.push_back(program.input_type(input));
  }
  for (size_t i = 0; i < replica_variables; ++i) input_types.push_back(DT_RESOURCE);
  for (size_t i = 0; i < input_types.size(); ++i) node.add_input(strings::StrCat("input:", i));
  const OpDef* op_def = nullptr;
  TF_RETURN_IF_ERROR(OpRegistry::Global()->LookUpOpDef(node.op(), &op_def));
  const auto properties =
      std::make_shared<NodeProperties>(op_def, node, input_types, program.output_types());
  FunctionLibraryRuntime* runtime = context->function_library();
  Device* device = runtime->device();
  OpKernel* made = nullptr;
  TF_RETURN_IF_ERROR(CreateOpKernel(DeviceType(kDeviceType), device, device->GetAllocator(AllocatorAttributes()),
                                    runtime, device->resource_manager(), properties, graph_def_version, &made));
  kernel->reset(made);
  return OkStatus();
}

// The events that Python made for a program (see `compiling.compilation`), in this order.
enum EventTemplate { kCompileBegin, kCompileEnd, kLoadEngine, kHostToDevice, kDeviceToHost, kExecute, kEventTemplates };

// Field 5 of IpuTraceEvent, `compile_end`, with its field 3, `duration`. Protobuf merges it into the one there is.
std::string Duration(int64_t micros) {
  std::string varint;
  for (uint64_t rest = static_cast<uint64_t>(micros < 0 ? 0 : micros);; rest >>= 7) {
    varint.push_back(static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0)));
    if (rest <= 0x7f) break;
  }
  return std::string{0x2a, static_cast<char>(varint.size() + 1), 0x18} + varint;
}

}  // namespace

Status LoweredProgram::Make(OpKernelContext* context, const IpuDevice& device, NodeDef node, int graph_def_version,
                            int64_t epoch, int64_t start_micros, std::unique_ptr<LoweredProgram>* program) {
  std::unique_ptr<LoweredProgram> made(new LoweredProgram(epoch));
  for (int i = 0; i < context->num_inputs(); ++i) made->shapes_.push_back(context->input(i).shape());
  TF_RETURN_IF_ERROR(made->ReadVariables(node));
  TF_RETURN_IF_ERROR(made->ReadInputs(node));
  TF_RETURN_IF_ERROR(made->ReadCompilation(node, start_micros));
  for (const char* attribute : {"_variable_chips", "_input_order", "_replica_variables", "_replica_chips", "_run_group", "_compiles",
                                "_module", "_launches", "_progress_bar", "_events", "_event_variables",
                                "_event_written"}) {
    node.mutable_attr()->erase(attribute);
  }
  TF_RETURN_IF_ERROR(MakeKernel(context, std::move(node), made->input_order_,
                                made->replicas_ == nullptr ? 0 : made->replicas_->size(), graph_def_version,
                                &made->kernel_));
  DeviceCounters& counters = CountersOf(device.ordinal());
  ++counters.programs_lowered;
  if (made->compiles_) ++counters.programs_compiled;
  *program = std::move(made);
  return OkStatus();
}

Status LoweredProgram::ReadVariables(const NodeDef& node) {
  TF_RETURN_IF_ERROR(GetNodeAttr(node, "_variable_chips", &variable_chips_));
  if (variable_chips_.size() != shapes_.size()) {
    return errors::Internal("tf_ipu_shim's lowering placed ", variable_chips_.size(), " of ", shapes_.size(),
                            " inputs");
  }
  homes_ = std::vector<std::atomic<const void*>>(shapes_.size());
  return OkStatus();
}

Status LoweredProgram::ReadInputs(const NodeDef& node) {
  const auto check = [this](const std::vector<int32_t>& inputs) -> Status {
    for (const int32_t input : inputs) {
      if (input >= 0 && input < static_cast<int64_t>(shapes_.size())) continue;
      return errors::Internal("tf_ipu_shim's lowering hands on input ", input, " of ", shapes_.size());
    }
    return OkStatus();
  };
  TryGetNodeAttr(node, "_input_order", &input_order_);
  TryGetNodeAttr(node, "_run_group", &run_group_);
  TF_RETURN_IF_ERROR(check(input_order_));
  std::vector<int32_t> variables, chips;
  if (!TryGetNodeAttr(node, "_replica_variables", &variables)) return OkStatus();
  TF_RETURN_IF_ERROR(check(variables));
  TF_RETURN_IF_ERROR(GetNodeAttr(node, "_replica_chips", &chips));
  if (chips.size() != variables.size()) return errors::Internal("tf_ipu_shim's lowering placed not all variables");
  replicas_ = std::make_unique<ReplicaVariables>(std::move(variables), std::move(chips));
  return OkStatus();
}

Status LoweredProgram::ReadCompilation(const NodeDef& node, int64_t start_micros) {
  if (!TryGetNodeAttr(node, "_compiles", &compiles_) || !compiles_) return OkStatus();
  std::string module;
  std::vector<std::string> launches, templates;
  bool show_bar = false;
  TF_RETURN_IF_ERROR(GetNodeAttr(node, "_module", &module));
  TF_RETURN_IF_ERROR(GetNodeAttr(node, "_launches", &launches));
  TF_RETURN_IF_ERROR(GetNodeAttr(node, "_progress_bar", &show_bar));
  TF_RETURN_IF_ERROR(GetNodeAttr(node, "_events", &templates));
  if (!templates.empty()) {
    if (templates.size() != kEventTemplates) {
      return errors::Internal("tf_ipu_shim's lowering made ", templates.size(), " trace events of ", kEventTemplates);
    }
    auto events = std::make_shared<ProgramEvents>();
    events->compile_end = templates[kCompileEnd];
    events->load_engine = templates[kLoadEngine];
    events->host_to_device = templates[kHostToDevice];
    events->device_to_host = templates[kDeviceToHost];
    events->execute = templates[kExecute];
    TF_RETURN_IF_ERROR(GetNodeAttr(node, "_event_variables", &events->variables));
    TF_RETURN_IF_ERROR(GetNodeAttr(node, "_event_written", &events->written));
    events_ = std::move(events);
    RecordEvent(templates[kCompileBegin], start_micros);
  }
  if (show_bar || events_ != nullptr) {
    first_run_ = CompileWatch::Begin(module, launches, show_bar, start_micros);
    ran_ = false;
  }
  return OkStatus();
}

bool LoweredProgram::Fits(OpKernelContext* context, int64_t epoch) const {
  if (epoch != epoch_) return false;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (shapes_[i] != context->input(i).shape()) return false;
  }
  return true;
}

Status LoweredProgram::BringVariablesHome(OpKernelContext* context, const IpuDevice& device) {
  for (size_t i = 0; i < variable_chips_.size(); ++i) {
    const int64_t chip = variable_chips_[i];
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
  if (input_order_.empty() && replicas_ == nullptr && !any_elsewhere) return OkStatus();
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
  for (const int32_t input : input_order_) TF_RETURN_IF_ERROR(add_input(input));
  if (input_order_.empty()) {
    for (size_t input = 0; input < shapes_.size(); ++input) TF_RETURN_IF_ERROR(add_input(input));
  }
  for (size_t copy = 0; replicas_ != nullptr && copy < replicas_->size(); ++copy) {
    add(replicas_->handle(copy), replicas_->input(copy));
  }
  *reordered = std::move(inputs);
  return OkStatus();
}

void LoweredProgram::Enter(std::function<void()> run) {
  if (run_group_.empty()) {
    run();
    return;
  }
  gate_.Enter([this, run = std::move(run)] {
    ++RunNumberOf(run_group_);
    run();
  });
}

void LoweredProgram::Leave() {
  if (!run_group_.empty()) gate_.Leave();
}

std::shared_ptr<CompileWatch> LoweredProgram::BeforeRun(OpKernelContext* context, const IpuDevice& device) {
  if (!ran_.load(std::memory_order_relaxed) && !ran_.exchange(true)) {
    std::shared_ptr<CompileWatch> first_run = std::move(first_run_);
    first_run->ShowBar();
    return first_run;
  }
  if (events_ != nullptr && events_->transfers_wanted()) {
    EngineTraceOf(device.ordinal()).Load(events_, BuffersOf(context, events_->variables), NowMicros());
  }
  return nullptr;
}

void LoweredProgram::AfterRun(OpKernelContext* context, const IpuDevice& device,
                              const std::shared_ptr<CompileWatch>& first_run) {
  const bool succeeded = context->status().ok();
  if (succeeded && replicas_ != nullptr) replicas_->Keep(context);
  if (first_run != nullptr) {
    first_run->EndBar(succeeded);
    if (!succeeded) {  // such as a variable without a value: the next run is the first
      first_run_ = first_run;
      ran_ = false;
    }
  }
  if (events_ == nullptr || !succeeded) return;
  EngineTrace& engine = EngineTraceOf(device.ordinal());
  const EngineTrace::Buffers variables = BuffersOf(context, events_->variables);
  if (first_run != nullptr) {
    // XLA compiles while the program first runs, so that only now is it known when it was compiled. What follows a
    // compilation on a real device is then recorded with that time.
    const int64_t compiled = first_run->end_micros();
    RecordEvent(events_->compile_end + Duration(compiled - first_run->start_micros()), compiled);
    if (events_->transfers_wanted()) engine.Load(events_, variables, compiled);
  }
  engine.Executed(events_, variables, BuffersOf(context, events_->written), NowMicros());
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
