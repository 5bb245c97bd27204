// Counters of host transfers, exchanges and program runs, which memory reports read.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/arena.h"

namespace tf_ipu_shim {

struct TransferCounter {
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> transfers{0};

  void Add(int64_t moved) {
    bytes.fetch_add(moved, std::memory_order_relaxed);
    transfers.fetch_add(1, std::memory_order_relaxed);
  }
  void Reset() {
    bytes = 0;
    transfers = 0;
  }
};

struct DeviceCounters {
  TransferCounter host_to_device;
  TransferCounter device_to_host;
  TransferCounter exchange[kMaxChips][kMaxChips];  // [source chip][destination chip]
  std::atomic<int64_t> programs_lowered{0};
  std::atomic<int64_t> programs_compiled{0};  // of those lowered, the ones that have something to compile
  std::atomic<int64_t> programs_run{0};
};

// The counters of one TensorFlow device, made at first use and kept for the life of the process.
DeviceCounters& CountersOf(int device_ordinal);

void ResetCounters(int device_ordinal);

}  // namespace tf_ipu_shim
