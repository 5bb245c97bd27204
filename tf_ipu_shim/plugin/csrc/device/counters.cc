// Keeps the transfer and run counters of each TensorFlow device.
#include "device/counters.h"

#include <mutex>

namespace tf_ipu_shim {

DeviceCounters& CountersOf(int device_ordinal) {
  static std::mutex mutex;
  static std::atomic<DeviceCounters*> counters[kMaxDevices];
  std::atomic<DeviceCounters*>& slot = counters[device_ordinal];
  if (DeviceCounters* found = slot.load(std::memory_order_acquire)) return *found;
  std::lock_guard<std::mutex> lock(mutex);
  if (slot.load(std::memory_order_relaxed) == nullptr) slot.store(new DeviceCounters());
  return *slot.load(std::memory_order_relaxed);
}

void ResetCounters(int device_ordinal) {
  DeviceCounters& counters = CountersOf(device_ordinal);
  counters.host_to_device.Reset();
  counters.device_to_host.Reset();
  for (int source = 0; source < kMaxChips; ++source) {
    for (int destination = 0; destination < kMaxChips; ++destination) counters.exchange[source][destination].Reset();
    ArenaOf(device_ordinal, source)->ResetPeak();
  }
  counters.programs_lowered = 0;
  counters.programs_compiled = 0;
  counters.programs_run = 0;
}

}  // namespace tf_ipu_shim
