// The ops of embedded applications. `ApplicationRuntime` starts an engine and `ApplicationCall` passes a batch to it;
// the other ops run in the engine's own graph (see `frontend/applications/engine.py`).
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "applications/application.h"
#include "kernels/output_shapes.h"
#include "process/python_call.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/env.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a set of TensorFlow ops

// Stateful here, although Graphcore declares the first two stateless: TensorFlow would merge two equal calls into one.
REGISTER_OP("ApplicationRuntime")
    .Input("inputs: input_types")
    .Input("filename: string")
    .Output("anchor: int32")
    .Attr("input_types: list(type) >= 0")
    .Attr("engine_name: string")
    .Attr("timeout_us: int = 5000")
    .SetIsStateful()
    .SetShapeFn(shape_inference::ScalarShape);

REGISTER_OP("ApplicationCall")
    .Input("infeeds: infeed_types")
    .Input("anchor: int32")
    .Output("outfeeds: outfeed_types")
    .Attr("infeed_types: list(type) >= 0")
    .Attr("outfeed_types: list(type) >= 0")
    .Attr("engine_name: string")
    .SetIsStateful()
    .SetShapeFn(shape_inference::UnknownShape);

REGISTER_OP("IpuApplicationInput")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Attr("engine: string")
    .Attr("index: int >= 0")
    .SetIsStateful()
    .SetShapeFn(shape_inference::UnknownShape);

REGISTER_OP("IpuApplicationInfeed")
    .Output("components: output_types")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("engine: string")
    .Attr("feed: int >= 0")
    .SetIsStateful()
    .SetShapeFn(SetOutputShapesFromAttribute);

REGISTER_OP("IpuApplicationBegin").Attr("engine: string").SetIsStateful().SetShapeFn(shape_inference::NoOutputs);

// The engines of this process by name. An engine outlives the session that started it, so it is never taken out again.
class Engines {
 public:
  static Engines& Get() {
    static auto* engines = new Engines;
    return *engines;
  }

  // The engine of that name, started if none is running.
  Status Start(const std::string& name, const std::string& path, Application::Tensors inputs, int64_t timeout_us) {
    std::shared_ptr<Application> fresh;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      for (;;) {
        const auto known = engines_.find(name);
        if (known == engines_.end()) break;
        if (known->second.started) return CheckSame(*known->second.application, path);
        changed_.wait(lock);  // another thread starts it
      }
      fresh = std::make_shared<Application>(name, VersionOf(path), std::move(inputs));
      engines_[name] = {fresh, false};
    }
    ApplicationStart order;
    order.engine = name;
    order.file = path;
    order.inputs = static_cast<int64_t>(fresh->inputs().size());
    ApplicationStarted program;
    const Status status = CallPython<StartApplicationCall>(order, &program);
    if (status.ok()) fresh->Describe(std::move(program), timeout_us);
    std::unique_lock<std::mutex> lock(mutex_);
    if (status.ok()) {
      engines_[name].started = true;
    } else {
      engines_.erase(name);
    }
    changed_.notify_all();
    return status;
  }

  Status Find(const std::string& name, std::shared_ptr<Application>* application) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto known = engines_.find(name);
    if (known == engines_.end()) {
      return errors::FailedPrecondition("There is no engine '", name, "'. Start it with embedded_runtime_start.");
    }
    *application = known->second.application;
    return OkStatus();
  }

 private:
  struct Entry {
    std::shared_ptr<Application> application;
    bool started = false;
  };

  // The path and the file's identity (to tell versions apart), or only the path if the file does not exist.
  static std::string VersionOf(const std::string& path) {
    FileStatistics file;
    if (!Env::Default()->Stat(path, &file).ok()) return path;
    return strings::StrCat(path, "|", file.length, "|", file.mtime_nsec);
  }

  static Status CheckSame(const Application& known, const std::string& path) {
    const std::string version = VersionOf(path);
    const std::string& started = known.file();
    // The file may be deleted by now: the engine has read it already.
    if (version == started || (version == path && started.rfind(path + "|", 0) == 0)) return OkStatus();
    return errors::AlreadyExists("Engine '", known.name(), "' runs ", started.substr(0, started.find('|')),
                                 started.rfind(path + "|", 0) == 0 ? " as it was before it was written again" : "",
                                 ", and cannot run ", path,
                                 " as well: an engine cannot be stopped. Choose another engine name.");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> engines_;
};

class ApplicationRuntimeOp : public OpKernel {
 public:
  explicit ApplicationRuntimeOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("engine_name", &engine_));
    OP_REQUIRES_OK(context, context->GetAttr("timeout_us", &timeout_us_));
    OP_REQUIRES(context, timeout_us_ >= 0,
                errors::InvalidArgument("The timeout of engine '", engine_, "' is ", timeout_us_,
                                        " microseconds; it must not be negative."));
  }
  void Compute(OpKernelContext* context) override {
    const int last = context->num_inputs() - 1;
    const Tensor& file = context->input(last);
    OP_REQUIRES(context, TensorShapeUtils::IsScalar(file.shape()),
                errors::InvalidArgument("filename must be one string, not ", file.shape().DebugString()));
    Application::Tensors inputs;
    for (int i = 0; i < last; ++i) inputs.push_back(context->input(i));
    OP_REQUIRES_OK(context,
                   Engines::Get().Start(engine_, file.scalar<tstring>()(), std::move(inputs), timeout_us_));
    Tensor* anchor = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &anchor));
    anchor->scalar<int32_t>()() = 0;
  }

 private:
  string engine_;
  int64_t timeout_us_ = 0;
};

// An op that waits for its engine without holding a thread.
class WaitingOp : public AsyncOpKernel {
 public:
  explicit WaitingOp(OpKernelConstruction* context, const char* attribute = "engine") : AsyncOpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr(attribute, &engine_));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    std::shared_ptr<Application> application;
    OP_REQUIRES_OK_ASYNC(context, Engines::Get().Find(engine_, &application), done);
    const WaitFunction wait = Waiting(context);
    CancellationManager* const cancellation = context->cancellation_manager();
    const CancellationToken token = cancellation->get_cancellation_token();
    auto waiter = std::make_shared<Application::Waiter>();
    waiter->done = [this, context, cancellation, token, done](const Status& status,
                                                              const Application::Tensors& tensors) {
      // The cancelling thread waits for its callbacks, so a callback must not wait for it.
      if (!errors::IsCancelled(status)) cancellation->DeregisterCallback(token);
      OP_REQUIRES_OK_ASYNC(context, status, done);
      OP_REQUIRES_OK_ASYNC(context, Output(context, tensors), done);
      done();
    };
    const bool registered = cancellation->RegisterCallback(token, [application, waiter, name = name()] {
      application->Refuse(waiter, errors::Cancelled(name, " was cancelled while it waited"));
    });
    OP_REQUIRES_ASYNC(context, registered, errors::Cancelled(name(), " was cancelled"), done);
    // From here on the op may be done at any time, and this object gone.
    const Status status = wait(application.get(), waiter);
    if (!status.ok()) application->Refuse(waiter, status);
  }

 protected:
  using WaitFunction = std::function<Status(Application*, const Application::WaiterPtr&)>;

  // Passes the waiter to the engine, without the context and the op.
  virtual WaitFunction Waiting(OpKernelContext* context) = 0;

  Status Output(OpKernelContext* context, const Application::Tensors& tensors) const {
    if (static_cast<int>(tensors.size()) != num_outputs()) {
      return errors::InvalidArgument("Engine '", engine_, "' gives ", tensors.size(), " results, and ", name(),
                                     " takes ", num_outputs());
    }
    for (int i = 0; i < num_outputs(); ++i) {
      if (tensors[i].dtype() != output_type(i)) {
        return errors::InvalidArgument("Result ", i, " of engine '", engine_, "' is ",
                                       DataTypeString(tensors[i].dtype()), ", and ", name(), " takes ",
                                       DataTypeString(output_type(i)));
      }
      context->set_output(i, tensors[i]);
    }
    return OkStatus();
  }

  string engine_;
};

class ApplicationCallOp : public WaitingOp {
 public:
  explicit ApplicationCallOp(OpKernelConstruction* context) : WaitingOp(context, "engine_name") {}

 protected:
  WaitFunction Waiting(OpKernelContext* context) override {
    Application::Tensors element;
    for (int i = 0; i + 1 < context->num_inputs(); ++i) element.push_back(context->input(i));
    return [element](Application* application, const Application::WaiterPtr& waiter) {
      return application->Call(element, waiter);
    };
  }
};

class ApplicationInfeedOp : public WaitingOp {
 public:
  explicit ApplicationInfeedOp(OpKernelConstruction* context) : WaitingOp(context) {
    OP_REQUIRES_OK(context, context->GetAttr("feed", &feed_));
  }

 protected:
  WaitFunction Waiting(OpKernelContext*) override {
    return [feed = feed_](Application* application, const Application::WaiterPtr& waiter) {
      application->Take(feed, waiter);
      return OkStatus();
    };
  }

 private:
  int64_t feed_ = 0;
};

class ApplicationBeginOp : public WaitingOp {
 public:
  explicit ApplicationBeginOp(OpKernelConstruction* context) : WaitingOp(context) {}

 protected:
  WaitFunction Waiting(OpKernelContext*) override {
    return [](Application* application, const Application::WaiterPtr& waiter) {
      application->Begin(waiter);
      return OkStatus();
    };
  }
};

class ApplicationInputOp : public OpKernel {
 public:
  explicit ApplicationInputOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("engine", &engine_));
    OP_REQUIRES_OK(context, context->GetAttr("index", &index_));
  }
  void Compute(OpKernelContext* context) override {
    std::shared_ptr<Application> application;
    OP_REQUIRES_OK(context, Engines::Get().Find(engine_, &application));
    const Application::Tensors& inputs = application->inputs();
    OP_REQUIRES(context, index_ < static_cast<int64_t>(inputs.size()),
                errors::InvalidArgument("Engine '", engine_, "' was started with ", inputs.size(), " inputs"));
    OP_REQUIRES(context, inputs[index_].dtype() == output_type(0),
                errors::InvalidArgument("Input ", index_, " of engine '", engine_, "' is ",
                                        DataTypeString(inputs[index_].dtype()), ", and the application takes ",
                                        DataTypeString(output_type(0))));
    context->set_output(0, inputs[index_]);
  }

 private:
  string engine_;
  int64_t index_ = 0;
};

REGISTER_KERNEL_BUILDER(Name("ApplicationRuntime").Device(DEVICE_CPU), ApplicationRuntimeOp);
REGISTER_KERNEL_BUILDER(Name("ApplicationCall").Device(DEVICE_CPU), ApplicationCallOp);
REGISTER_KERNEL_BUILDER(Name("IpuApplicationInfeed").Device(DEVICE_CPU), ApplicationInfeedOp);
REGISTER_KERNEL_BUILDER(Name("IpuApplicationBegin").Device(DEVICE_CPU), ApplicationBeginOp);
REGISTER_KERNEL_BUILDER(Name("IpuApplicationInput").Device(DEVICE_CPU), ApplicationInputOp);

}  // namespace

tensorflow::Status FailApplication(const std::string& engine, const tensorflow::Status& status, bool closes) {
  std::shared_ptr<Application> application;
  TF_RETURN_IF_ERROR(Engines::Get().Find(engine, &application));
  application->Fail(status, closes);
  return tensorflow::OkStatus();
}

}  // namespace tf_ipu_shim

// A run of an engine has failed, with a TensorFlow status code; with `closes`, the engine has ended.
extern "C" void ipu_fail_application(const char* engine, int32_t code, const char* message, int32_t closes) {
  tf_ipu_shim::FailApplication(engine, tensorflow::Status(static_cast<absl::StatusCode>(code), message), closes != 0)
      .IgnoreError();
}
