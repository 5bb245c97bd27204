// Where replicas meet for a collective. The last to arrive computes the result, and all go on with it: no thread waits.
// Those that wait for a replica that has ended its run, or for too long, are sent away with an error that names both.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/mutex.h"

namespace tf_ipu_shim {

// One meeting: what each replica of a group brought, and how it goes on.
struct Meeting {
  struct Arrival {
    tensorflow::OpKernelContext* context = nullptr;
    std::function<void()> done;
    tensorflow::CancellationToken token = tensorflow::CancellationManager::kInvalidToken;
    std::string op;
    std::chrono::steady_clock::time_point since;
  };
  explicit Meeting(int64_t size) : arrivals(size) {}
  std::vector<Arrival> arrivals;
  int64_t arrived = 0;
};

class Meetings {
 public:
  // A program, a collective in it, a group of replicas, and an iteration of the loop around it.
  using Key = std::tuple<std::string, int64_t, int64_t, int64_t>;
  static Meetings& Get();

  // Adds a replica to the first meeting that waits for it. Gives the meeting back once all are there. Until then the
  // replica waits; one whose run is cancelled is sent away.
  std::unique_ptr<Meeting> Join(const Key& key, int64_t place, int64_t size, Meeting::Arrival arrival);

  // A replica has come to the end of its run: it will not come to any meeting of that run any more.
  void Ended(const std::string& run_group, int64_t run, int64_t replica);

 private:
  using Waiting = std::map<Key, std::list<std::unique_ptr<Meeting>>>;
  struct Ends {
    int64_t run = -1;
    std::set<int64_t> replicas;
  };
  struct Hopeless {
    std::unique_ptr<Meeting> meeting;
    int64_t first = 0;    // replica of its group
    int64_t missing = 0;  // one that has not come
    bool is_late = false;  // else its run has ended
  };

  // Takes a replica out of its meeting; false where that is complete already.
  bool RemoveLocked(const Key& key, int64_t place, tensorflow::CancellationToken token, Meeting::Arrival* arrival)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Cancel(const Key& key, int64_t place, tensorflow::CancellationToken token);
  // The replica that a meeting waits for in vain, because its run has ended; -1 where there is none.
  int64_t MissedLocked(const Key& key, const Meeting& meeting) const TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::list<Hopeless> HopelessLocked() TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void SendAway(std::list<Hopeless> meetings);
  void Watch();

  tensorflow::mutex mutex_;
  Waiting waiting_ TF_GUARDED_BY(mutex_);
  std::map<std::string, Ends> ended_ TF_GUARDED_BY(mutex_);  // by program
  bool is_watched_ TF_GUARDED_BY(mutex_) = false;
};

}  // namespace tf_ipu_shim
