// Collects the uncompiled ops of a session's step as one program, for its profile.
#include "programs/plain_programs.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "device/device.h"
#include "programs/lowering_call.h"
#include "kernels/one_dnn.h"
#include "kernels/plain_ops.h"
#include "protocol/program_messages.h"
#include "programs/program_request.h"
#include "programs/run_log.h"
#include "process/trace.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file looks at TensorFlow's graphs

// The profile and events of a set of ops with given shapes.
struct ProfiledOps {
  RunLog log;
  std::shared_ptr<const TracedEvents> events;  // null where there are none
  std::vector<std::string> variables;           // by argument, see `CompilationMessage`
};

// A variable that a step used.
struct RecordedVariable {
  core::RefCountPtr<Var> variable;
  const void* buffer = nullptr;  // before the step's ops; null where it had no value
};

// The uncompiled ops of one set of fetches and feeds on one device.
struct PlainProgram {
  int ordinal = 0;
  GraphDef graph;
  std::map<std::string, std::string> ops;  // by the node's name
  std::shared_ptr<const TracedEvents> last;  // of the last step; the registry's mutex is held for it

  std::mutex mutex;
  int64_t epoch = 0;                                     // in which these were profiled
  std::map<std::string, std::shared_ptr<ProfiledOps>> known;  // by the shapes of what its ops were given
};

using GivenInputs = std::map<std::string, std::vector<ArgumentMessage>>;  // by the node's name

// One step of it.
struct PlainStep {
  std::shared_ptr<PlainProgram> program;
  FunctionLibraryRuntime* runtime = nullptr;
  int64_t start_micros = 0;
  std::mutex mutex;
  GivenInputs inputs;
  std::map<std::string, RecordedVariable> variables;  // by name
};

// A session has a function library for each set of fetches and feeds, and so for each program.
using PlainProgramKey = std::pair<const FunctionLibraryDefinition*, int>;
using PlainStepKey = std::pair<int64_t, int>;

struct PlainRegistry {
  std::mutex mutex;
  std::map<PlainProgramKey, std::shared_ptr<PlainProgram>> programs;
  std::map<PlainStepKey, std::shared_ptr<PlainStep>> steps;
};

PlainRegistry& AllPlainPrograms() {
  static auto* const registry = new PlainRegistry;
  return *registry;
}

std::string ShapesOf(const GivenInputs& inputs) {
  std::string signature;
  for (const auto& [node, arguments] : inputs) {
    strings::StrAppend(&signature, node, ":");
    for (const ArgumentMessage& argument : arguments) {
      strings::StrAppend(&signature, PartialTensorShape::DebugString(argument.shape));
    }
  }
  return signature;
}

std::shared_ptr<ProfiledOps> ProfiledOpsOf(const PlainStep& step) {
  auto made = std::make_shared<ProfiledOps>();
  ProgramRequest request;
  ProgramAnswer answer;
  request.ordinal = step.program->ordinal;
  PlainOpsMessage& ops = request.plain_ops.emplace();
  ops.graph = step.program->graph;
  for (const auto& [node, arguments] : step.inputs) ops.nodes.push_back({node, arguments});
  const Status status = Lower(step.runtime, request, &answer);
  if (!status.ok()) {  // that there is no profile stops no step
    LOG(INFO) << "There is no profile of a session's ops on /device:IPU:" << request.ordinal << ": " << status.message();
  } else if (answer.compilation.has_value()) {
    made->log.Take(&*answer.compilation);
    made->variables = std::move(answer.compilation->variables);
    if (answer.compilation->events.has_value()) {
      made->events = std::make_shared<const TracedEvents>(*std::move(answer.compilation->events));
      RecordEvent(made->events->compile_begin, step.start_micros);
      RecordEvent(made->events->compile_end, NowMicros(), 0);  // nothing is compiled here
    }
  }
  return made;
}

const void* BufferOf(Var& variable) {
  tf_shared_lock lock(*variable.mu());
  return variable.is_initialized ? variable.tensor()->data() : nullptr;
}

// The values of some of a program's arguments, before or after the step.
EngineTrace::Buffers BuffersOf(const PlainStep& step, const ProfiledOps& ops, const std::vector<int32_t>& arguments,
                               bool before) {
  EngineTrace::Buffers buffers;
  for (const int32_t argument : arguments) {
    if (argument < 0 || static_cast<size_t>(argument) >= ops.variables.size()) continue;
    const auto seen = step.variables.find(ops.variables[argument]);
    if (seen == step.variables.end()) continue;
    const void* const buffer = before ? seen->second.buffer : BufferOf(*seen->second.variable);
    if (buffer != nullptr) buffers.push_back(buffer);
  }
  return buffers;
}

void ProfilePlainStep(const PlainStep& step) {
  PlainProgram& program = *step.program;
  std::lock_guard<std::mutex> lock(program.mutex);
  if (const int64_t epoch = CurrentEpoch(program.ordinal); program.epoch != epoch) {
    program.known.clear();
    program.epoch = epoch;
  }
  std::shared_ptr<ProfiledOps>& known = program.known[ShapesOf(step.inputs)];
  if (known == nullptr) known = ProfiledOpsOf(step);
  {
    PlainRegistry& registry = AllPlainPrograms();
    std::lock_guard<std::mutex> registry_lock(registry.mutex);
    program.last = known->events;
  }
  if (known->log.StartTime() != 0) known->log.Add(step.start_micros);
  if (known->events == nullptr) return;
  const ProgramEvents& events = *known->events;
  const int64_t now = NowMicros();
  EngineTrace& engine = EngineTraceOf(program.ordinal);
  if (!events.transfers.has_value()) {
    engine.OnProgramEnd(known->events, {}, {}, now);
    return;
  }
  engine.Load(known->events, BuffersOf(step, *known, events.variables, true), now);
  engine.OnProgramEnd(known->events, BuffersOf(step, *known, events.variables, false),
                      BuffersOf(step, *known, events.written, false), now);
}

// When the step ends, TensorFlow drops the step's resources in the thread that runs the session.
class StepEndNotifier : public ResourceBase {
 public:
  explicit StepEndNotifier(PlainStepKey key) : key_(key) {}
  ~StepEndNotifier() override {
    std::shared_ptr<PlainStep> step;
    PlainRegistry& registry = AllPlainPrograms();
    {
      std::lock_guard<std::mutex> lock(registry.mutex);
      const auto found = registry.steps.find(key_);
      if (found == registry.steps.end()) return;
      step = std::move(found->second);
      registry.steps.erase(found);
    }
    ProfilePlainStep(*step);
  }
  std::string DebugString() const override { return "the end of a step"; }

 private:
  const PlainStepKey key_;
};

// The step that an op is run in; null where it is part of no session's own graph.
std::shared_ptr<PlainStep> PlainStepOf(const OpKernel& kernel, OpKernelContext* context, int ordinal) {
  FunctionLibraryRuntime* const runtime = context->function_library();
  if (runtime == nullptr || context->step_container() == nullptr) return nullptr;
  PlainRegistry& registry = AllPlainPrograms();
  const PlainStepKey key{context->step_id(), ordinal};
  std::lock_guard<std::mutex> lock(registry.mutex);
  const auto known = registry.programs.find({runtime->GetFunctionLibraryDefinition(), ordinal});
  if (known == registry.programs.end()) return nullptr;
  const auto op = known->second->ops.find(kernel.name());
  if (op == known->second->ops.end()) return nullptr;
  // An op without a kernel uses the kernel of a program: see `kernels/op_programs.h`.
  if (op->second != WithoutOneDnnPrefix(kernel.def().op()) && kernel.def().op() != "IpuProgram") return nullptr;
  std::shared_ptr<PlainStep>& step = registry.steps[key];
  if (step == nullptr) {
    step = std::make_shared<PlainStep>();
    step->program = known->second;
    step->runtime = runtime;
    step->start_micros = NowMicros();
    const std::string name = strings::StrCat("ipu_end_of_step_", ordinal);
    const Status kept = context->step_container()->Create(context->resource_manager(), name, new StepEndNotifier(key));
    if (!kept.ok()) {
      registry.steps.erase(key);
      return nullptr;
    }
    if (step->program->last != nullptr) EngineTraceOf(ordinal).OnProgramStart(step->program->last);
  }
  return step;
}

void RecordVariable(OpKernelContext* context, int input, PlainStep* step) {
  const ResourceHandle& handle = context->input(input).flat<ResourceHandle>()(0);
  if (step->variables.count(handle.name()) > 0) return;
  RecordedVariable seen;
  if (!LookupResource(context, handle, &seen.variable).ok()) return;  // not made yet, or no variable
  seen.buffer = BufferOf(*seen.variable);
  step->variables.emplace(handle.name(), std::move(seen));
}

// Sees the graph of each set of fetches and feeds, when TensorFlow has divided it among the devices.
class RecordPlainProgramsPass : public GraphOptimizationPass {
 public:
  Status Run(const GraphOptimizationPassOptions& options) override {
    if (options.partition_graphs == nullptr || options.is_function_graph) return OkStatus();
    for (const auto& [device, graph] : *options.partition_graphs) {
      DeviceNameUtils::ParsedName name;
      if (!DeviceNameUtils::ParseFullName(device, &name) || name.type != kDeviceType) continue;
      if (name.id < 0 || name.id >= kMaxDevices || (PlainOpsWatched(name.id) & kProfilePlainOps) == 0) continue;
      Remember(*graph, options.flib_def, name.id);
    }
    return OkStatus();
  }

 private:
  static void Remember(const Graph& graph, const FunctionLibraryDefinition* library, int ordinal) {
    auto program = std::make_shared<PlainProgram>();
    program->ordinal = ordinal;
    graph.ToGraphDef(&program->graph);
    *program->graph.mutable_library() = library->ReachableDefinitions(program->graph).ToProto();
    for (const NodeDef& node : program->graph.node()) program->ops[node.name()] = node.op();
    PlainRegistry& registry = AllPlainPrograms();
    std::lock_guard<std::mutex> lock(registry.mutex);
    registry.programs[{library, ordinal}] = std::move(program);
  }
};

REGISTER_OPTIMIZATION(OptimizationPassRegistry::POST_PARTITIONING, 1000, RecordPlainProgramsPass);

}  // namespace

void RecordPlainOp(const OpKernel& kernel, OpKernelContext* context, int ordinal) {
  if (context->session_handle().empty() || kernel.def().attr().count(kChipAttr) > 0) return;
  const std::shared_ptr<PlainStep> step = PlainStepOf(kernel, context, ordinal);
  if (step == nullptr) return;
  std::vector<ArgumentMessage> inputs(context->num_inputs());
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (context->has_input(i) && !context->input_is_ref(i)) inputs[i] = DescribeArgument(context, i);
  }
  std::lock_guard<std::mutex> lock(step->mutex);
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (inputs[i].type == DT_RESOURCE) RecordVariable(context, i, step.get());
  }
  step->inputs[kernel.name()] = std::move(inputs);
}

}  // namespace tf_ipu_shim
