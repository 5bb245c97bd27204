// The memory of one simulated chip: TensorFlow's CPU allocator with every byte counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tensorflow/core/framework/allocator.h"

namespace tf_ipu_shim {

// Counts the bytes that live tensors requested, current and peak, without alignment and bookkeeping.
class Arena : public tensorflow::Allocator {
 public:
  Arena(int device_ordinal, int chip);

  std::string Name() override { return name_; }
  void* AllocateRaw(size_t alignment, size_t num_bytes) override;
  void DeallocateRaw(void* pointer) override;
  bool TracksAllocationSizes() const override { return true; }
  size_t RequestedSize(const void* pointer) const override;
  size_t AllocatedSize(const void* pointer) const override { return RequestedSize(pointer); }

  // Counts memory that was not allocated here.
  void Add(int64_t num_bytes);
  void Remove(int64_t num_bytes) { live_.fetch_sub(num_bytes, std::memory_order_relaxed); }

  int64_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  void ResetPeak() { peak_.store(live_bytes(), std::memory_order_relaxed); }

 private:
  const std::string name_;
  std::atomic<int64_t> live_{0};
  std::atomic<int64_t> peak_{0};
};

// The arena of a chip of a TensorFlow device. Made at first use and never destroyed: tensors may outlive devices.
Arena* ArenaOf(int device_ordinal, int chip);

// Devices that a script configures, then those of applications that run embedded (see `applications/application.h`).
inline constexpr int kMaxConfiguredDevices = 64;
inline constexpr int kMaxDevices = 128;
inline constexpr int kMaxChips = 256;

// Whether these are valid numbers of a device and a chip in it.
inline bool IsValidChip(int64_t device, int64_t chip = 0) {
  return device >= 0 && device < kMaxDevices && chip >= 0 && chip < kMaxChips;
}

}  // namespace tf_ipu_shim
