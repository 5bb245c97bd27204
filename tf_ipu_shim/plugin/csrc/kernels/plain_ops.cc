// Records trace events for uncompiled ops of a session.
#include "kernels/plain_ops.h"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "device/device.h"
#include "device/first_use.h"
#include "kernels/one_dnn.h"
#include "process/trace.h"
#include "kernels/xla_kernels.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file looks at TensorFlow's ops

using Events = std::shared_ptr<const TracedEvents>;

// A session has a function library for each set of fetches and feeds, and so for each program.
using ProgramKey = std::pair<std::string, const FunctionLibraryRuntime*>;

constexpr size_t kMaxStepsKept = 1024;

struct PlainOps {
  std::mutex mutex;
  Events events;
  std::map<ProgramKey, Events> programs;
  int64_t epoch = 0;  // in which these were compiled
  std::set<int64_t> steps;  // numbered in the process, upwards
};

PlainOps& PlainOpsOf(int ordinal) {
  static auto* const all = new PlainOps[kMaxDevices];
  return all[ordinal];
}

// Answered from shapes, or passed on.
bool IsShapeQuery(const std::string& op) {
  static const auto* const ops = new std::set<std::string>{"EnsureShape", "OnesLike",        "PreventGradient", "Rank",
                                                           "Shape",       "ShapeN",          "Size",            "Snapshot",
                                                           "StopGradient", "ZerosLike"};
  return ops->count(op) > 0;
}

// Scalars are computed by the driver itself, as in programs.
bool HasNonScalarInput(OpKernelContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (context->has_input(i) && context->input_dtype(i) != DT_RESOURCE && context->input(i).dims() > 0) return true;
  }
  for (int i = 0; i < context->num_outputs(); ++i) {
    const Tensor* output = context->mutable_output(i);
    if (output != nullptr && output->dtype() != DT_RESOURCE && output->dims() > 0) return true;
  }
  return false;
}

bool NeedsEngine(const OpKernel& kernel, OpKernelContext* context) {
  if (kernel.def().attr().count(kChipAttr) > 0) return false;  // part of a program
  if (RunsWithoutEngine(kernel) || IsShapeQuery(kernel.def().op()) || !HasNonScalarInput(context)) return false;
  return XlaHasKernel(WithoutOneDnnPrefix(kernel.def()));
}

}  // namespace

std::atomic<uint8_t> plain_ops_watched[kMaxDevices];

void WatchPlainOps(int ordinal, uint8_t what, bool watch) {
  if (watch) {
    plain_ops_watched[ordinal].fetch_or(what);
  } else {
    plain_ops_watched[ordinal].fetch_and(static_cast<uint8_t>(~what));
  }
}

void SetPlainOpEvents(int ordinal, std::optional<ProgramEvents> events) {
  PlainOps& ops = PlainOpsOf(ordinal);
  std::lock_guard<std::mutex> lock(ops.mutex);
  ops.programs.clear();
  ops.steps.clear();
  ops.events.reset();
  if (events.has_value()) ops.events = std::make_shared<const TracedEvents>(*std::move(events));
  WatchPlainOps(ordinal, kTracePlainOps, ops.events != nullptr);
}

void TracePlainOp(const OpKernel& kernel, OpKernelContext* context, int ordinal) {
  if (PlainOpsWatched(ordinal) & kProfilePlainOps) return;  // the step's end makes the events, and knows more
  const std::string& session = context->session_handle();
  if (session.empty() || !context->status().ok() || !NeedsEngine(kernel, context)) return;
  PlainOps& ops = PlainOpsOf(ordinal);
  std::lock_guard<std::mutex> lock(ops.mutex);
  if (ops.events == nullptr || !ops.steps.insert(context->step_id()).second) return;
  if (ops.steps.size() > kMaxStepsKept) ops.steps.erase(ops.steps.begin());
  if (const int64_t epoch = CurrentEpoch(ordinal); ops.epoch != epoch) {
    ops.programs.clear();
    ops.epoch = epoch;
  }
  const int64_t now = NowMicros();
  Events& events = ops.programs[{session, context->function_library()}];
  if (events == nullptr) {
    events = std::make_shared<const TracedEvents>(*ops.events);
    RecordEvent(events->compile_begin, now);
    RecordEvent(events->compile_end, now, 0);  // nothing is compiled here
  }
  EngineTrace& engine = EngineTraceOf(ordinal);
  if (events->transfers.has_value()) engine.Load(events, {}, now);
  engine.OnProgramEnd(events, {}, {}, now);
}

}  // namespace tf_ipu_shim
