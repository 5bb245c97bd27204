// Keeps count of the deletions under way, and of the process's end.
#include "process/deletions.h"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "process/exits.h"
#include "tensorflow/core/platform/env.h"

namespace tf_ipu_shim {
namespace {

// The process's end waits that long for deletions, which usually take less than a millisecond.
constexpr std::chrono::milliseconds kLimitAtEnd(200);

struct Deletions {
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  int under_way = 0;
  bool process_ends = false;
};

// Never destroyed: a thread may come to it at any time.
Deletions& All() {
  static auto* all = new Deletions;
  return *all;
}

bool AnyUnderWay() {
  std::lock_guard<std::mutex> lock(All().mutex);
  return All().under_way > 0;
}

}  // namespace

void DeleteElsewhere(std::function<void()> deletion, std::chrono::milliseconds limit) {
  Deletions& all = All();
  std::unique_lock<std::mutex> lock(all.mutex);
  if (all.process_ends) {  // whatever it uses goes next
    lock.unlock();
    return deletion();
  }
  ++all.under_way;
  const auto over = std::make_shared<bool>(false);
  tensorflow::Env::Default()->SchedClosure([&all, over, deletion = std::move(deletion)] {
    {
      std::lock_guard<std::mutex> lock(all.mutex);
      if (all.process_ends) return;
    }
    deletion();
    std::lock_guard<std::mutex> lock(all.mutex);
    --all.under_way;
    *over = true;
    all.changed.notify_all();
  });
  all.changed.wait_for(lock, limit, [&] { return *over; });
}

}  // namespace tf_ipu_shim

// The process ends. Returns the number of deletions that are not over: TensorFlow's devices have to stay for them.
extern "C" int32_t ipu_leave_deletions() {
  using namespace tf_ipu_shim;  // NOLINT: the C interface of that namespace
  Deletions& all = All();
  std::unique_lock<std::mutex> lock(all.mutex);
  all.changed.wait_for(lock, kLimitAtEnd, [&] { return all.under_way == 0; });
  if (!std::exchange(all.process_ends, true) && all.under_way > 0) SkipExitHandlersIf(AnyUnderWay);
  return all.under_way;
}
