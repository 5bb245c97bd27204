// Implements the kernel of `XlaLaunch` so that programs update variables in place.
//
// TensorFlow's kernel of `XlaLaunch` assumes that the program may have reference variables, so XLA writes new values of
// variables to new memory. Its base class, the kernel of jit-compiled calls on the CPU, is told that there are none.
// Then XLA overwrites a variable's memory unless another tensor shares it.
#include "launches/launch.h"

#include <atomic>
#include <exception>
#include <future>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "launches/compile_ahead.h"
#include "launches/conversion_errors.h"
#include "launches/launch_options.h"
#include "process/log_noise.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tf_private/xla_launch.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

class Launch final : public XlaLocalLaunchBase {
 public:
  Launch(OpKernelConstruction* construction, const std::vector<int>& constants, const std::vector<int>& resources,
         const NameAttrList& function, bool in_place, bool interruptible, bool fuses)
      : XlaLocalLaunchBase(construction, constants, resources, function, /*has_ref_vars=*/!in_place),
        interruptible_(interruptible),
        fuses_(fuses) {}

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    if (interruptible_) {
      const Status status = ahead_.Wait(context, [this](OpKernelContext* own) { ComputeOnCurrentThread(own); });
      OP_REQUIRES_ASYNC(context, status.ok(), status, done);
    }
    ComputeWithLaunchOptions(context, done);
  }

 private:
  // XLA compiles on this thread, and `done` may go on with other ops on it.
  void ComputeWithLaunchOptions(OpKernelContext* context, const DoneCallback& done) {
    const auto options = std::make_shared<LaunchOptions>(fuses_);
    const auto is_done = std::make_shared<std::atomic<bool>>(false);
    const auto compiler = std::this_thread::get_id();
    auto hidden = std::make_shared<std::optional<ScopedConversionErrorFilter>>(std::in_place);
    try {
      XlaLocalLaunchBase::ComputeAsync(context, [=] {
        *is_done = true;
        if (std::this_thread::get_id() == compiler) {
          options->Leave();
          hidden->reset();
        }
        done();
      });
    } catch (const std::exception& error) {
      if (*is_done) throw;  // of what ran after it on this thread
      context->CtxFailure(ConversionError(error));
      options->Leave();
      hidden->reset();
      return done();
    }
    options->Leave();
    hidden->reset();
  }

  void ComputeOnCurrentThread(OpKernelContext* context) {
    std::promise<void> ended;
    ComputeWithLaunchOptions(context, [&ended] { ended.set_value(); });
    ended.get_future().wait();
  }

  const bool interruptible_, fuses_;
  CompileAhead ahead_;  // destroyed first: it uses all of this
};

std::vector<int> Range(int first, int count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

}  // namespace

Status MakeLaunch(OpKernelConstruction* construction, DeviceBase* device,
                  const std::shared_ptr<const NodeProperties>& properties, bool interruptible,
                  std::unique_ptr<OpKernel>* kernel) {
  const DeviceType type("CPU");
  MemoryTypeVector inputs, outputs;
  TF_RETURN_IF_ERROR(MemoryTypesForNode(OpRegistry::Global(), type, properties->node_def, &inputs, &outputs));
  Status status;
  OpKernelConstruction made(type, device, construction->device()->GetAllocator(AllocatorAttributes()),
                            construction->function_library(), construction->resource_manager(), properties, inputs,
                            outputs, construction->graph_def_version(), &status);
  DataTypeVector constants;
  int resources = 0;
  NameAttrList function;
  TF_RETURN_IF_ERROR(made.GetAttr("Tconstants", &constants));
  TF_RETURN_IF_ERROR(made.GetAttr("Nresources", &resources));
  TF_RETURN_IF_ERROR(made.GetAttr("function", &function));
  const int first_resource = static_cast<int>(properties->input_types.size()) - resources;
  std::vector<int> known = Range(0, static_cast<int>(constants.size()));
  if (properties->node_def.attr().count("_ipu_shapes") > 0) {  // variables, which come after them
    std::vector<int> shapes;
    TF_RETURN_IF_ERROR(made.GetAttr("_ipu_shapes", &shapes));
    known.insert(known.end(), shapes.begin(), shapes.end());
  }
  const bool in_place = properties->node_def.attr().count("_ipu_in_place") > 0;
  const bool fuses = properties->node_def.attr().count("_ipu_unfused") == 0;
  *kernel =
      std::make_unique<Launch>(&made, known, Range(first_resource, resources), function, in_place, interruptible, fuses);
  return status;
}

}  // namespace tf_ipu_shim
