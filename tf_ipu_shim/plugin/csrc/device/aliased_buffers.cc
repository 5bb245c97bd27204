// Implements zero-copy host tensors on a chip: a TensorBuffer that keeps the host's tensor and counts in the arena.
#include "device/aliased_buffers.h"

#include <cstdint>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocation_description.pb.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file is a buffer of TensorFlow's tensors

constexpr size_t kMinAliasedBytes = 4096;

class AliasedBuffer final : public TensorBuffer {
 public:
  AliasedBuffer(const Tensor& host, Arena* arena) : TensorBuffer(host.data()), host_(host), arena_(arena) {
    arena_->Add(size());
  }
  size_t size() const override { return host_.TotalBytes(); }
  // TensorFlow writes to a tensor where both its buffer and that one's root have one user.
  TensorBuffer* root_buffer() override { return DMAHelper::buffer(&host_); }
  void FillAllocationDescription(AllocationDescription* description) const override {
    description->set_requested_bytes(size());
    description->set_allocated_bytes(size());
    description->set_allocator_name(arena_->Name());
    description->set_ptr(reinterpret_cast<uintptr_t>(data()));
  }
  bool GetAllocatedBytes(size_t* bytes) const override {
    *bytes = size();
    return true;
  }

 private:
  ~AliasedBuffer() override { arena_->Remove(size()); }

  Tensor host_;
  Arena* const arena_;
};

}  // namespace

bool CanAliasHostBuffer(const Tensor& host) {
  if (!DataTypeCanUseMemcpy(host.dtype()) || host.TotalBytes() < kMinAliasedBytes || !host.IsAligned()) return false;
  TensorBuffer* const buffer = const_cast<TensorBuffer*>(DMAHelper::buffer(&host));
  return buffer != nullptr && buffer->root_buffer() == buffer && buffer->OwnsMemory();
}

Tensor AliasHostBuffer(const Tensor& host, Arena* arena) {
  return Tensor(host.dtype(), host.shape(), core::RefCountPtr<TensorBuffer>(new AliasedBuffer(host, arena)));
}

}  // namespace tf_ipu_shim
