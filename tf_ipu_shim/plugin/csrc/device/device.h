// The IPU as a TensorFlow device: one device with many chips, as on a real system.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "device/arena.h"
#include "device/first_use.h"
#include "process/forks.h"
#include "tensorflow/core/common_runtime/local_device.h"
#include "tensorflow/core/common_runtime/scoped_allocator_mgr.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/public/session_options.h"

namespace tf_ipu_shim {

inline constexpr char kDeviceType[] = "IPU";
// Which chip a node runs on. Attributes with a leading underscore survive inlining and grappler.
inline constexpr char kChipAttr[] = "_ipu";

// One chip. Its device type is CPU, so that kernels and XLA find the host platform; its allocator is the chip's arena.
class ChipDevice : public tensorflow::LocalDevice {
 public:
  ChipDevice(const tensorflow::SessionOptions& options, const tensorflow::DeviceAttributes& attributes, Arena* arena);

  tensorflow::Allocator* GetAllocator(tensorflow::AllocatorAttributes attributes) override;
  tensorflow::Allocator* GetScopedAllocator(tensorflow::AllocatorAttributes attributes, int64_t step_id) override;
  tensorflow::ScopedAllocatorMgr* GetScopedAllocatorMgr() const override { return scoped_allocators_.get(); }
  tensorflow::Status Sync() override { return tensorflow::OkStatus(); }
  tensorflow::Status MakeTensorFromProto(const tensorflow::TensorProto& proto,
                                         tensorflow::AllocatorAttributes attributes,
                                         tensorflow::Tensor* tensor) override;
  void CopyTensorInSameDevice(const tensorflow::Tensor* input, tensorflow::Tensor* output,
                              const tensorflow::DeviceContext* context, tensorflow::StatusCallback done) override;

 protected:
  Arena* arena_;

 private:
  std::unique_ptr<tensorflow::ScopedAllocatorMgr> scoped_allocators_;
};

// The device that scripts name `/device:IPU:<ordinal>`. Its own allocator is chip 0's arena.
class IpuDevice : public ChipDevice {
 public:
  IpuDevice(const tensorflow::SessionOptions& options, const tensorflow::DeviceAttributes& attributes, int ordinal);
  ~IpuDevice() override;

  // Kernels run on the chip that their node names, or on chip 0.
  void Compute(tensorflow::OpKernel* kernel, tensorflow::OpKernelContext* context) override;
  void ComputeAsync(tensorflow::AsyncOpKernel* kernel, tensorflow::OpKernelContext* context,
                    tensorflow::AsyncOpKernel::DoneCallback done) override;
  tensorflow::Status TryGetDeviceContext(tensorflow::DeviceContext** context) override;

  ChipDevice* Chip(int index);
  int ordinal() const { return ordinal_; }
  bool IsInterruptible() const;  // by Ctrl-C
  bool BelongsToParentProcess() const { return forks_ != ForkCount(); }  // made before this process was forked

 private:
  // Returns the options that the configuration allows a kernel; attaches the device at first use.
  bool IsInterrupted() const;
  // Runs a kernel with the chip that its op is marked for; the error is of the device, the kernel's own is in the context.
  tensorflow::Status ComputeOnChip(tensorflow::OpKernel* kernel, tensorflow::OpKernelContext* context);
  tensorflow::Status CheckUse(const tensorflow::OpKernel& kernel, Use* use) const;

  const tensorflow::SessionOptions options_;
  const int ordinal_;
  const int64_t forks_ = ForkCount();
  tensorflow::DeviceContext* const transfers_;  // reference counted
  tensorflow::DeviceBase::AcceleratorDeviceInfo accelerator_;
  std::atomic<ChipDevice*> chips_[kMaxChips] = {};
  tensorflow::mutex mutex_;
};

// The name in the metadata of a session that runs an embedded application. The version is the ordinal of that session's
// only device.
inline constexpr char kApplicationSession[] = "tf_ipu_shim.application";

// How many TensorFlow devices new sessions and eager contexts get.
void SetDeviceCount(int count);
int DeviceCount();

// The number of physical devices that TensorFlow lists: all of the IPU system until a process configures its own.
void SetListedDeviceCount(int count);

// The devices `IPU:first` to `IPU:count-1`, for a context that runs already.
tensorflow::Status CreateIpuDevices(const tensorflow::SessionOptions& options, const std::string& name_prefix,
                                    int first, std::vector<std::unique_ptr<tensorflow::Device>>* devices);

// The IPU device behind a `Device*` of TensorFlow's, or null for a device of another type.
IpuDevice* AsIpuDevice(tensorflow::DeviceBase* device);

}  // namespace tf_ipu_shim
