// Counts forks of the process with `pthread_atfork`.
#include "process/forks.h"

#include <pthread.h>

#include <atomic>

namespace tf_ipu_shim {
namespace {

std::atomic<int64_t> forks{0};

const int watched = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

int64_t ForkCount() { return forks.load(std::memory_order_relaxed); }

}  // namespace tf_ipu_shim
