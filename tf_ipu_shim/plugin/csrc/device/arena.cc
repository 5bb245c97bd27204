// Implements a chip's memory arena: allocates from TensorFlow's CPU allocator and counts bytes.
#include "device/arena.h"

#include <mutex>

#include "launches/compile_ahead.h"
#include "launches/compile_watch.h"

namespace tf_ipu_shim {
namespace {

// The requested size is kept in front of the block; one cache line keeps TensorFlow's 64-byte alignment.
constexpr size_t kHeader = 64;

size_t& SizeOf(const void* pointer) {
  return *reinterpret_cast<size_t*>(const_cast<char*>(static_cast<const char*>(pointer)) - kHeader);
}

}  // namespace

Arena::Arena(int device_ordinal, int chip)
    : name_("ipu_" + std::to_string(device_ordinal) + "_chip_" + std::to_string(chip)) {}

void* Arena::AllocateRaw(size_t alignment, size_t num_bytes) {
  if (compile_watches.load(std::memory_order_relaxed) != 0) {
    if (CompilesAhead()) return nullptr;
    LaunchScope::OnAllocation();
  }
  if (alignment > kHeader || num_bytes > SIZE_MAX - kHeader) return nullptr;
  void* block = tensorflow::cpu_allocator()->AllocateRaw(kHeader, num_bytes + kHeader);
  if (block == nullptr) return nullptr;
  void* pointer = static_cast<char*>(block) + kHeader;
  SizeOf(pointer) = num_bytes;
  Add(num_bytes);
  return pointer;
}

void Arena::Add(int64_t num_bytes) {
  const int64_t live = live_.fetch_add(num_bytes, std::memory_order_relaxed) + num_bytes;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

void Arena::DeallocateRaw(void* pointer) {
  if (pointer == nullptr) return;
  Remove(SizeOf(pointer));
  tensorflow::cpu_allocator()->DeallocateRaw(static_cast<char*>(pointer) - kHeader);
}

size_t Arena::RequestedSize(const void* pointer) const { return SizeOf(pointer); }

Arena* ArenaOf(int device_ordinal, int chip) {
  static std::mutex mutex;
  static std::atomic<Arena*> arenas[kMaxDevices][kMaxChips];
  std::atomic<Arena*>& slot = arenas[device_ordinal][chip];
  if (Arena* arena = slot.load(std::memory_order_acquire)) return arena;
  std::lock_guard<std::mutex> lock(mutex);
  if (slot.load(std::memory_order_relaxed) == nullptr) slot.store(new Arena(device_ordinal, chip));
  return slot.load(std::memory_order_relaxed);
}

}  // namespace tf_ipu_shim
