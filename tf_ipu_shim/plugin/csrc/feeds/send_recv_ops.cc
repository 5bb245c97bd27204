// `IpuSendToHost` and `IpuRecvAtHost`: send a tensor from a running program to the host part of the same step. They use
// the step's rendezvous, so that tensors that were not received are dropped when the step ends.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "device/device.h"
#include "feeds/infeed_source.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/util/device_name_utils.h"
#include "replicas/wait_limit.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a set of TensorFlow ops

REGISTER_OP("IpuSendToHost")
    .Input("tensor: tensor_type")
    .Attr("tensor_type: type")
    .Attr("tensor_name: string")
    .Attr("send_device: string")
    .Attr("send_device_incarnation: int")
    .Attr("recv_device: string")
    .SetIsStateful()
    .SetShapeFn(shape_inference::NoOutputs);

REGISTER_OP("IpuRecvAtHost")
    .Output("tensor: T")
    .Attr("T: type")
    .Attr("tensor_name: string")
    .Attr("send_device: string")
    .Attr("send_device_incarnation: int")
    .Attr("recv_device: string")
    .Attr("device_ordinal: int = 0")
    .SetIsStateful()
    .SetShapeFn(shape_inference::UnknownShape);

// Escapes the separators of a rendezvous key.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char each : text) {
    if (each == ';') {
      escaped += "%3B";
    } else if (each == '%') {
      escaped += "%25";
    } else {
      escaped += each;
    }
  }
  return escaped;
}

// The common part of the two ends.
struct Channel {
  std::string tensor_name, send_device, recv_device;
  int64_t incarnation = 0;

  Status Read(OpKernelConstruction* context) {
    TF_RETURN_IF_ERROR(context->GetAttr("tensor_name", &tensor_name));
    TF_RETURN_IF_ERROR(context->GetAttr("send_device", &send_device));
    TF_RETURN_IF_ERROR(context->GetAttr("recv_device", &recv_device));
    return context->GetAttr("send_device_incarnation", &incarnation);
  }

  // Both ends are in the host's memory: the same CPU is named twice, and no bytes move in between.
  Status Key(OpKernelContext& context, Rendezvous::ParsedKey* key) const {
    if (context.rendezvous() == nullptr) {
      return errors::FailedPrecondition("The tensor ", tensor_name, " is sent or received outside a step. Build both ",
                                        "ends in one graph, and fetch them in one session.run.");
    }
    // Of the TensorFlow device, because the context's device may be a chip.
    const DeviceNameUtils::ParsedName& device = context.function_library()->device()->parsed_name();
    const std::string cpu = DeviceNameUtils::FullName(device.job, device.replica, device.task, "CPU", 0);
    const std::string name = strings::StrCat("ipu_send ", Escaped(tensor_name), " from ", Escaped(send_device), " to ",
                                             Escaped(recv_device));
    return Rendezvous::ParseKey(
        Rendezvous::CreateKey(cpu, static_cast<uint64>(incarnation), cpu, name, FrameAndIter(0, 0)), key);
  }
};

RendezvousInterface::Args HostArgs() {
  RendezvousInterface::Args args;
  args.alloc_attrs.set_on_host(true);
  return args;
}

class SendToHostOp : public OpKernel {
 public:
  explicit SendToHostOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, channel_.Read(context));
  }
  void Compute(OpKernelContext* context) override {
    Rendezvous::ParsedKey key;
    OP_REQUIRES_OK(context, channel_.Key(*context, &key));
    CountFromIpu(context, context->input(0).TotalBytes());
    // A copy in host memory, which frees the IPU's.
    const Tensor copy = tensor::DeepCopy(context->input(0));
    OP_REQUIRES_OK(context, context->rendezvous()->Send(key, HostArgs(), copy, /*is_dead=*/false));
  }
  bool IsExpensive() override { return false; }

 private:
  Channel channel_;
};

// One value that is waited for. Of its receive and the end of the time the first ends the op; whichever comes later finds
// nothing left of the op.
class PendingReceive {
 public:
  PendingReceive(OpKernelContext* context, AsyncOpKernel::DoneCallback done)
      : context_(context), done_(std::move(done)) {}

  void OnReceived(const Status& status, const Tensor& value) {
    if (!Claim()) return;
    if (status.ok()) {
      context_->set_output(0, value);
    } else {
      context_->SetStatus(status);
    }
    done_();
  }

  // Waits, and fails the op where nothing came.
  void Watch(const std::string& what) {
    const auto limit = WaitLimit();
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (changed_.wait_for(lock, limit, [this] { return claimed_; })) return;
      claimed_ = true;
    }
    context_->SetStatus(errors::DeadlineExceeded(
        what, " was not sent within ", limit.count() / 1000.0, " s. Run the program that sends it in the same ",
        "session.run, with the same tensor_name, send_device, send_device_incarnation and recv_device; ",
        kWaitLimitVariable, " changes how long is waited."));
    done_();
  }

  bool claimed() {
    std::lock_guard<std::mutex> lock(mutex_);
    return claimed_;
  }

 private:
  bool Claim() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (claimed_) return false;
    claimed_ = true;
    changed_.notify_all();
    return true;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool claimed_ = false;
  OpKernelContext* const context_;
  const AsyncOpKernel::DoneCallback done_;
};

class RecvAtHostOp : public AsyncOpKernel {
 public:
  explicit RecvAtHostOp(OpKernelConstruction* context) : AsyncOpKernel(context) {
    OP_REQUIRES_OK(context, channel_.Read(context));
    OP_REQUIRES_OK(context, context->GetAttr("T", &type_));
  }
  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    Rendezvous::ParsedKey key;
    OP_REQUIRES_OK_ASYNC(context, channel_.Key(*context, &key), done);
    RendezvousInterface::Args args = HostArgs();
    args.cancellation_manager = context->cancellation_manager();
    const std::string what = strings::StrCat(name(), ": the tensor ", channel_.tensor_name);
    auto receive = std::make_shared<PendingReceive>(context, std::move(done));
    context->rendezvous()->RecvAsync(
        key, args,
        [receive, type = type_, what](const Status& status, const RendezvousInterface::Args&,
                                      const RendezvousInterface::Args&, const Tensor& value, bool) {
          if (status.ok() && value.dtype() != type) {
            receive->OnReceived(
                errors::InvalidArgument(what, " was sent as ", DataTypeString(value.dtype()), " and is ",
                                        "received as ", DataTypeString(type), ". Give T the type sent."),
                value);
            return;
          }
          receive->OnReceived(status, value);
        });
    if (!receive->claimed()) Env::Default()->SchedClosure([receive, what] { receive->Watch(what); });
  }

 private:
  Channel channel_;
  DataType type_ = DT_INVALID;
};

REGISTER_KERNEL_BUILDER(Name("IpuSendToHost").Device(kDeviceType), SendToHostOp);
REGISTER_KERNEL_BUILDER(Name("IpuRecvAtHost").Device(DEVICE_CPU), RecvAtHostOp);

}  // namespace
}  // namespace tf_ipu_shim
