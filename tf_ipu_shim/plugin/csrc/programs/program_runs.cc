// Serializes and numbers the runs of programs with feeds or replicas.
#include "programs/program_runs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "device/arena.h"

namespace tf_ipu_shim {

std::atomic<int64_t>& RunNumberOf(const std::string& run_group) {
  static auto* mutex = new tensorflow::mutex;
  static auto* numbers = new std::map<std::string, std::unique_ptr<std::atomic<int64_t>>>;
  tensorflow::mutex_lock lock(*mutex);
  std::unique_ptr<std::atomic<int64_t>>& number = (*numbers)[run_group];
  if (number == nullptr) number = std::make_unique<std::atomic<int64_t>>(0);
  return *number;
}

void BeginRun(const std::string& run_group) {
  static std::atomic<int64_t> runs{0};
  RunNumberOf(run_group) = ++runs;
}

tensorflow::Status ReplicaOfProgram::Init(tensorflow::OpKernelConstruction* context) {
  tensorflow::string run_group;
  TF_RETURN_IF_ERROR(context->GetAttr("replica", &index_));
  TF_RETURN_IF_ERROR(context->GetAttr("replicas", &count_));
  TF_RETURN_IF_ERROR(context->GetAttr("run_group", &run_group));
  if (index_ >= count_ || count_ > kMaxChips) {
    return tensorflow::errors::InvalidArgument(context->def().name(), ": there is no replica ", index_, " of ", count_);
  }
  run_number_ = &RunNumberOf(run_group);
  return tensorflow::OkStatus();
}

void RunGate::Enter(tensorflow::CancellationManager* cancellation, std::function<void()> run,
                    std::function<void()> refuse) {
  const tensorflow::CancellationToken token = cancellation->get_cancellation_token();
  {
    tensorflow::mutex_lock lock(mutex_);
    if (busy_) {
      const auto leave = [this, cancellation, token, refuse] {
        if (Remove(cancellation, token)) refuse();
      };
      // Under the lock: without it the run may be let in now, the step end, and the manager be gone. The manager holds
      // no lock when it calls back.
      if (cancellation->RegisterCallback(token, leave)) {
        waiting_.push_back({cancellation, token, std::move(run)});
        return;
      }
    } else {
      busy_ = true;
      refuse = nullptr;
    }
  }
  if (refuse) {
    refuse();
  } else {
    run();
  }
}

bool RunGate::Remove(const tensorflow::CancellationManager* cancellation, tensorflow::CancellationToken token) {
  tensorflow::mutex_lock lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
    return waiting.cancellation == cancellation && waiting.token == token;
  });
  if (found == waiting_.end()) return false;
  waiting_.erase(found);
  return true;
}

void RunGate::Leave() {
  Waiting next;
  {
    tensorflow::mutex_lock lock(mutex_);
    if (waiting_.empty()) {
      busy_ = false;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  // Not `DeregisterCallback`: that would wait for a callback that finds no run here any more.
  next.cancellation->TryDeregisterCallback(next.token);
  next.run();
}

}  // namespace tf_ipu_shim
