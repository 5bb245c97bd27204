#include "program_runs.h"

#include <map>
#include <memory>
#include <utility>

namespace tf_ipu_shim {

std::atomic<int64_t>& RunNumberOf(const std::string& run_group) {
  static auto* mutex = new tensorflow::mutex;
  static auto* numbers = new std::map<std::string, std::unique_ptr<std::atomic<int64_t>>>;
  tensorflow::mutex_lock lock(*mutex);
  std::unique_ptr<std::atomic<int64_t>>& number = (*numbers)[run_group];
  if (number == nullptr) number = std::make_unique<std::atomic<int64_t>>(0);
  return *number;
}

void RunGate::Enter(std::function<void()> run) {
  {
    tensorflow::mutex_lock lock(mutex_);
    if (busy_) {
      waiting_.push_back(std::move(run));
      return;
    }
    busy_ = true;
  }
  run();
}

void RunGate::Leave() {
  std::function<void()> next;
  {
    tensorflow::mutex_lock lock(mutex_);
    if (waiting_.empty()) {
      busy_ = false;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  next();
}

}  // namespace tf_ipu_shim
