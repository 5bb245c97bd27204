// Implements the IPU device: registration with TensorFlow, host transfers, running kernels on the right chip.
#include "device/device.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "launches/compile_watch.h"
#include "device/counters.h"
#include "device/first_use.h"
#include "floats/float_checks.h"
#include "process/interrupts.h"
#include "device/aliased_buffers.h"
#include "kernels/plain_ops.h"
#include "programs/plain_programs.h"
#include "process/trace.h"
#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is TensorFlow's device interface, filled in

constexpr int64_t kReportedMemoryBytes = int64_t{1472} * 638976;  // a GC200; the plan uses the configured chip

void CopyBuffer(const Tensor* input, Tensor* output) {
  if (DataTypeCanUseMemcpy(input->dtype())) {
    const auto source = input->tensor_data();
    if (!source.empty()) std::memcpy(const_cast<char*>(output->tensor_data().data()), source.data(), source.size());
  } else {
    *output = *input;
  }
}

// Sees each copy between host and IPU that TensorFlow makes.
class TransferContext : public DeviceContext {
 public:
  explicit TransferContext(int ordinal)
      : counters_(CountersOf(ordinal)), trace_(EngineTraceOf(ordinal)), arena_(ArenaOf(ordinal, 0)) {}

  void CopyCPUTensorToDevice(const Tensor* host, Device*, Tensor* device_tensor, StatusCallback done,
                             bool) const override {
    counters_.host_to_device.Add(host->TotalBytes());
    if (CanAliasHostBuffer(*host)) {
      *device_tensor = Tensor();  // what was allocated for a copy counts no longer
      *device_tensor = AliasHostBuffer(*host, arena_);
    } else {
      CopyBuffer(host, device_tensor);
    }
    done(OkStatus());
  }
  void CopyDeviceTensorToCPU(const Tensor* device_tensor, StringPiece, Device*, Tensor* host,
                             StatusCallback done) override {
    counters_.device_to_host.Add(device_tensor->TotalBytes());
    if (host_reads_traced.load(std::memory_order_relaxed)) trace_.OnHostRead(device_tensor->data());
    CopyBuffer(device_tensor, host);
    done(OkStatus());
  }
  void CopyTensorInSameDevice(const Tensor* input, Device*, Tensor* output, StatusCallback done) const override {
    CopyBuffer(input, output);
    done(OkStatus());
  }

 private:
  DeviceCounters& counters_;
  EngineTrace& trace_;
  Arena* const arena_;
};

// Graphcore's TensorFlow treats two TensorFlow devices as two systems: transfers between them pass through the host.
void CopyBetweenDevices(DeviceContext*, DeviceContext*, Device* source, Device* destination,
                        const AllocatorAttributes, const AllocatorAttributes, const Tensor* input, Tensor* output, int,
                        StatusCallback done) {
  if (IpuDevice* from = AsIpuDevice(source)) CountersOf(from->ordinal()).device_to_host.Add(input->TotalBytes());
  if (IpuDevice* to = AsIpuDevice(destination)) CountersOf(to->ordinal()).host_to_device.Add(input->TotalBytes());
  CopyBuffer(input, output);
  done(OkStatus());
}

CopyTensor::Registration register_copy(DeviceType{kDeviceType}, DeviceType{kDeviceType}, CopyBetweenDevices);

DeviceAttributes CpuAttributes(DeviceAttributes attributes) {
  attributes.set_device_type("CPU");
  return attributes;
}

int ChipOf(const OpKernel* kernel) {
  const auto& attributes = kernel->def().attr();
  const auto found = attributes.find(kChipAttr);
  return found == attributes.end() ? 0 : static_cast<int>(found->second.i());
}

std::atomic<int> device_count{1};
std::atomic<int> listed_device_count{1};

DeviceAttributes AttributesOf(const string& name_prefix, int ordinal) {
  return Device::BuildDeviceAttributes(name_prefix + "/device:IPU:" + std::to_string(ordinal), DeviceType(kDeviceType),
                                       Bytes(kReportedMemoryBytes), DeviceLocality(), "simulated Graphcore IPU");
}

std::unique_ptr<Device> MakeIpuDevice(const SessionOptions& options, const string& name_prefix, int ordinal) {
  return std::make_unique<IpuDevice>(options, AttributesOf(name_prefix, ordinal), ordinal);
}

class IpuDeviceFactory : public DeviceFactory {
 public:
  Status ListPhysicalDevices(std::vector<string>* devices) override {
    for (int ordinal = 0; ordinal < listed_device_count; ++ordinal) {
      devices->push_back("/physical_device:IPU:" + std::to_string(ordinal));
    }
    return OkStatus();
  }
  Status CreateDevices(const SessionOptions& options, const string& name_prefix,
                       std::vector<std::unique_ptr<Device>>* devices) override {
    const auto& session = options.config.experimental().session_metadata();
    if (session.name() == kApplicationSession) {
      const int64_t ordinal = session.version();
      if (ordinal < kMaxConfiguredDevices || ordinal >= kMaxDevices) {
        return errors::InvalidArgument("There is no device ", ordinal, " for an embedded application");
      }
      devices->push_back(MakeIpuDevice(options, name_prefix, static_cast<int>(ordinal)));
      return OkStatus();
    }
    if (name_prefix.empty()) return DescribeListed(options, devices);
    return CreateIpuDevices(options, name_prefix, 0, devices);
  }

 private:
  // `device_lib.list_local_devices` makes devices only to read their attributes, and prefixes no job.
  static Status DescribeListed(const SessionOptions& options, std::vector<std::unique_ptr<Device>>* devices) {
    for (int ordinal = 0; ordinal < listed_device_count; ++ordinal) {
      devices->push_back(std::make_unique<IpuDevice>(options, AttributesOf("", ordinal),
                                                     std::min(ordinal, kMaxConfiguredDevices - 1)));
    }
    return OkStatus();
  }
};

// XLA turns an error inside a loop into an InternalError, and a context keeps its first error.
void ReportInterrupted(const OpKernel& kernel, OpKernelContext* context) {
  if (IsInterruptedError(context->status())) const_cast<Status&>(context->status()) = InterruptedError(kernel.name());
}

// Above 50: TensorFlow's placer then prefers the IPU to other accelerators. Below 70: the CPU stays ahead.
REGISTER_LOCAL_DEVICE_FACTORY("IPU", IpuDeviceFactory, 60);

}  // namespace

ChipDevice::ChipDevice(const SessionOptions& options, const DeviceAttributes& attributes, Arena* arena)
    : LocalDevice(options, attributes),
      arena_(arena),
      scoped_allocators_(std::make_unique<ScopedAllocatorMgr>(attributes.name())) {}

Allocator* ChipDevice::GetAllocator(AllocatorAttributes attributes) {
  if (attributes.on_host()) return cpu_allocator();
  return arena_;
}

Allocator* ChipDevice::GetScopedAllocator(AllocatorAttributes attributes, int64_t) { return GetAllocator(attributes); }

Status ChipDevice::MakeTensorFromProto(const TensorProto& proto, AllocatorAttributes attributes, Tensor* tensor) {
  if (proto.dtype() <= 0 || proto.dtype() > DataType_MAX) {
    return errors::InvalidArgument("A constant for ", name(), " has no valid dtype: ", proto.dtype());
  }
  Tensor parsed(proto.dtype());
  if (!parsed.FromProto(GetAllocator(attributes), proto)) {
    return errors::InvalidArgument("Cannot read a ", DataTypeString(proto.dtype()), " constant for ", name());
  }
  *tensor = std::move(parsed);
  return OkStatus();
}

void ChipDevice::CopyTensorInSameDevice(const Tensor* input, Tensor* output, const DeviceContext*,
                                        StatusCallback done) {
  CopyBuffer(input, output);
  done(OkStatus());
}

IpuDevice::IpuDevice(const SessionOptions& options, const DeviceAttributes& attributes, int ordinal)
    : ChipDevice(options, attributes, ArenaOf(ordinal, 0)),
      options_(options),
      ordinal_(ordinal),
      transfers_(new TransferContext(ordinal)) {
  // Without this, TensorFlow's eager runtime treats the device as a CPU and shares buffers instead of copying them.
  accelerator_.default_context = transfers_;
  set_tensorflow_accelerator_device_info(&accelerator_);
}

IpuDevice::~IpuDevice() {
  for (auto& chip : chips_) delete chip.load();
  transfers_->Unref();
}

ChipDevice* IpuDevice::Chip(int index) {
  if (index < 0 || index >= kMaxChips) return nullptr;
  if (ChipDevice* chip = chips_[index].load(std::memory_order_acquire)) return chip;
  mutex_lock lock(mutex_);
  if (chips_[index].load() == nullptr) {
    chips_[index].store(new ChipDevice(options_, CpuAttributes(attributes()), ArenaOf(ordinal_, index)));
  }
  return chips_[index].load();
}

void IpuDevice::Compute(OpKernel* kernel, OpKernelContext* context) {
  // Eager calls give asynchronous kernels, too, for which OP_REQUIRES ends the process.
  const Status computed = ComputeOnChip(kernel, context);
  if (!computed.ok()) context->CtxFailureWithWarning(__FILE__, __LINE__, computed);
}

Status IpuDevice::ComputeOnChip(OpKernel* kernel, OpKernelContext* context) {
  if (IsInterrupted()) return InterruptedError(kernel->name());
  const int index = ChipOf(kernel);
  ChipDevice* chip = Chip(index);
  if (chip == nullptr) {
    return errors::InvalidArgument("Op ", kernel->name(), " is marked for IPU ", index, ", of at most ", kMaxChips);
  }
  Use use = Use::kRun;
  if (!IsAttached(ordinal_)) TF_RETURN_IF_ERROR(CheckUse(*kernel, &use));
  const uint8_t watched = PlainOpsWatched(ordinal_);
  if (TF_PREDICT_FALSE(watched & kProfilePlainOps)) RecordPlainOp(*kernel, context, ordinal_);
  DeviceBase* const device = context->params()->device;
  const LaunchScope launch(kernel);
  const uint8_t checks = FloatChecksOf(ordinal_);
  FloatChecker watch;
  if (TF_PREDICT_FALSE(checks != 0)) watch.Begin(checks, context);
  context->params()->device = chip;
  kernel->Compute(context);
  context->params()->device = device;
  if (TF_PREDICT_FALSE(!context->status().ok())) ReportInterrupted(*kernel, context);
  if (TF_PREDICT_FALSE(checks != 0) && context->status().ok()) {
    TF_RETURN_IF_ERROR(watch.End(context, ordinal_, index));
  }
  if (use == Use::kZeros && context->status().ok()) TF_RETURN_IF_ERROR(ZeroOutputs(context));
  if (TF_PREDICT_FALSE(watched & kTracePlainOps) && use == Use::kRun) TracePlainOp(*kernel, context, ordinal_);
  return OkStatus();
}

void IpuDevice::ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context, AsyncOpKernel::DoneCallback done) {
  OP_REQUIRES_ASYNC(context, !IsInterrupted(), InterruptedError(kernel->name()), done);
  const int index = ChipOf(kernel);
  ChipDevice* chip = Chip(index);
  OP_REQUIRES_ASYNC(
      context, chip != nullptr,
      errors::InvalidArgument("Op ", kernel->name(), " is marked for IPU ", index, ", of at most ", kMaxChips), done);
  Use use = Use::kRun;
  if (!IsAttached(ordinal_)) OP_REQUIRES_OK_ASYNC(context, CheckUse(*kernel, &use), done);
  if (TF_PREDICT_FALSE(PlainOpsWatched(ordinal_) & kProfilePlainOps)) RecordPlainOp(*kernel, context, ordinal_);
  DeviceBase* const device = context->params()->device;
  const LaunchScope launch(kernel);
  const uint8_t checks = FloatChecksOf(ordinal_);
  FloatChecker watch;
  if (TF_PREDICT_FALSE(checks != 0)) watch.Begin(checks, context);
  context->params()->device = chip;
  kernel->ComputeAsync(context, [this, kernel, context, device, index, checks, watch, use,
                                 done = std::move(done)]() mutable {
    context->params()->device = device;
    if (TF_PREDICT_FALSE(!context->status().ok())) ReportInterrupted(*kernel, context);
    if (TF_PREDICT_FALSE(checks != 0) && context->status().ok()) {
      OP_REQUIRES_OK_ASYNC(context, watch.End(context, ordinal_, index), done);
    }
    if (use == Use::kZeros && context->status().ok()) OP_REQUIRES_OK_ASYNC(context, ZeroOutputs(context), done);
    done();
  });
}

// An embedded application serves all its callers and continues after an error.
bool IpuDevice::IsInterruptible() const { return ordinal_ < kMaxConfiguredDevices; }

bool IpuDevice::IsInterrupted() const { return IsInterruptible() && Interrupted(); }

Status IpuDevice::CheckUse(const OpKernel& kernel, Use* use) const {
  const bool exempt = RunsWithoutEngine(kernel);
  TF_RETURN_IF_ERROR(FindDeviceUse(ordinal_, !exempt, use));
  if (*use == Use::kCompileOnly && !exempt) return CompileOnlyError(kernel);
  if (exempt) *use = Use::kRun;
  return OkStatus();
}

Status IpuDevice::TryGetDeviceContext(DeviceContext** context) {
  transfers_->Ref();
  *context = transfers_;
  return OkStatus();
}

void SetDeviceCount(int count) { device_count = count; }
void SetListedDeviceCount(int count) { listed_device_count = count; }
int DeviceCount() { return device_count; }

Status CreateIpuDevices(const SessionOptions& options, const std::string& name_prefix, int first,
                        std::vector<std::unique_ptr<Device>>* devices) {
  for (int ordinal = first; ordinal < DeviceCount(); ++ordinal) {
    devices->push_back(MakeIpuDevice(options, name_prefix, ordinal));
  }
  return OkStatus();
}

IpuDevice* AsIpuDevice(DeviceBase* device) { return dynamic_cast<IpuDevice*>(device); }

}  // namespace tf_ipu_shim
