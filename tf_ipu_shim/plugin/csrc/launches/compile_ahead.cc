// Compiles an XLA launch on a separate thread by a trial run on copies of its inputs.
#include "launches/compile_ahead.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "launches/compile_watch.h"
#include "process/exits.h"
#include "process/interrupts.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file runs a TensorFlow kernel

constexpr auto kPollInterval = std::chrono::milliseconds(20);

thread_local bool compiles_ahead = false;
std::atomic<int> left_behind{0};

// A compilation that goes on at the process's exit uses what its handlers would destroy.
bool AnyLeftBehind() { return left_behind.load() > 0; }

// A trial run of a launch with copies of the step's variables, which share their memory copy-on-write.
class TrialLaunch {
 public:
  static std::unique_ptr<TrialLaunch> Of(OpKernelContext* context) {
    std::unique_ptr<TrialLaunch> made(new TrialLaunch(*context->params()));
    return made->Take(context) ? std::move(made) : nullptr;
  }

  ~TrialLaunch() {
    for (const ResourceHandle& named : named_) manager_->Delete<Var>(named.container(), named.name()).IgnoreError();
  }

  void Run(const CompileAhead::Launch& launch) {
    compiles_ahead = true;
    OpKernelContext context(&params_, outputs_);
    launch(&context);
  }

 private:
  explicit TrialLaunch(const OpKernelContext::Params& step) : manager_(step.resource_manager) {
    params_.op_kernel = step.op_kernel;
    params_.device = step.device;
    params_.resource_manager = step.resource_manager;
    params_.function_library = step.function_library;
    params_.session_metadata = step.session_metadata;
    params_.frame_iter = step.frame_iter;
  }

  bool Take(OpKernelContext* context) {
    outputs_ = context->num_outputs();
    output_attributes_.resize(outputs_);
    params_.output_attr_array = output_attributes_.data();
    input_attributes_.resize(context->num_inputs());
    tensors_.reserve(context->num_inputs());
    for (int i = 0; i < context->num_inputs(); ++i) {
      tensors_.push_back(context->input(i));
      if (context->input_dtype(i) == DT_RESOURCE && !MakePlaceholderVariable(context, i, &tensors_.back()))
        return false;
    }
    for (Tensor& tensor : tensors_) inputs_.emplace_back(&tensor);
    params_.inputs = inputs_;
    params_.input_alloc_attrs = input_attributes_;
    return true;
  }

  // In TensorFlow 2.15's launch only a variable's name leads to it.
  bool MakePlaceholderVariable(OpKernelContext* context, int index, Tensor* handle) {
    static std::atomic<int64_t> number{0};
    const ResourceHandle& given = HandleFromInput(context, index);
    core::RefCountPtr<Var> variable;
    if (!LookupResource(context, given, &variable).ok()) return false;  // one without a value has no resource yet
    core::RefCountPtr<Var> alike(new Var(variable->tensor()->dtype()));
    {
      tf_shared_lock lock(*variable->mu());
      *alike->tensor() = *variable->tensor();
      values_.push_back(*variable->tensor());
      alike->is_initialized = variable->is_initialized;
    }
    const std::string name = "tf_ipu_shim_compiles_ahead_" + std::to_string(number++);
    const ResourceHandle made = MakeResourceHandle<Var>(context, manager_->default_container(), name);
    if (!manager_->Create(made.container(), name, alike.release()).ok()) return false;
    named_.push_back(made);
    *handle = Tensor(DT_RESOURCE, TensorShape({}));
    handle->scalar<ResourceHandle>()() = made;
    return true;
  }

  ResourceMgr* const manager_;
  OpKernelContext::Params params_;
  int outputs_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<TensorValue> inputs_;
  std::vector<AllocatorAttributes> input_attributes_, output_attributes_;
  std::vector<ResourceHandle> named_;
  // Held once more than by the variables: memory without another holder is donated to XLA.
  std::vector<Tensor> values_;
};

bool IsCancelled(OpKernelContext* context) {
  CancellationManager* const manager = context->cancellation_manager();
  return manager != nullptr && manager->IsCancelled();
}

}  // namespace

bool CompilesAhead() { return compiles_ahead; }

int PendingCompilations() { return left_behind; }

CompileAhead::~CompileAhead() {
  if (thread_.joinable()) thread_.join();
}

bool CompileAhead::Begin(OpKernelContext* context, const Launch& launch) {
  std::shared_ptr<TrialLaunch> rehearsal = TrialLaunch::Of(context);
  if (rehearsal == nullptr) return false;
  try {
    thread_ = std::thread([this, launch, rehearsal = std::move(rehearsal)]() mutable {
      pthread_setname_np(pthread_self(), "ipu_compile");
      ++compile_watches;  // so that the arena looks at who asks for memory
      rehearsal->Run(launch);
      --compile_watches;
      rehearsal.reset();
      std::lock_guard<std::mutex> lock(mutex_);
      if (left_) --left_behind;
      over_.store(true, std::memory_order_release);
      changed_.notify_all();
    });
  } catch (const std::system_error&) {  // the system gives no thread
    return false;
  }
  return true;
}

Status CompileAhead::Wait(OpKernelContext* context, const Launch& launch) {
  if (TF_PREDICT_TRUE(over_.load(std::memory_order_acquire))) return OkStatus();
  std::unique_lock<std::mutex> lock(mutex_);
  if (!std::exchange(began_, true) && !Begin(context, launch)) over_ = true;
  while (!over_) {
    const bool interrupted = Interrupted();
    if (interrupted || IsCancelled(context)) {
      Leave();
      const std::string& name = context->op_kernel().name();
      return interrupted ? InterruptedError(name) : errors::Cancelled(name, " was cancelled while XLA compiled it");
    }
    changed_.wait_for(lock, kPollInterval);
  }
  if (thread_.joinable()) thread_.join();  // it has let go of the mutex, and keeps a stack until it is joined
  return OkStatus();
}

void CompileAhead::Leave() {
  static const bool registered = (SkipExitHandlersIf(AnyLeftBehind), true);
  (void)registered;
  if (!std::exchange(left_, true)) ++left_behind;
}

}  // namespace tf_ipu_shim
