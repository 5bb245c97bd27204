// The rendezvous of replicas at a collective. The last to arrive computes the result and all continue with it, so that
// no thread waits. Replicas that wait for one whose run has ended, or for too long, fail with an error that names both.
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

// One rendezvous: the participants of a replica group and their continuations.
struct ReplicaRendezvous {
  struct Participant {
    tensorflow::OpKernelContext* context = nullptr;
    std::function<void()> done;
    tensorflow::CancellationToken token = tensorflow::CancellationManager::kInvalidToken;
    std::string op;
    std::chrono::steady_clock::time_point since;
  };
  explicit ReplicaRendezvous(int64_t size) : participants(size) {}
  std::vector<Participant> participants;
  int64_t num_arrived = 0;
};

class ReplicaRendezvousManager {
 public:
  // Program, collective within it, replica group, iteration of the enclosing loop.
  using Key = std::tuple<std::string, int64_t, int64_t, int64_t>;
  static ReplicaRendezvousManager& Get();

  // Adds a replica to the first rendezvous that misses it, and returns the rendezvous when it is complete. A replica
  // whose run is cancelled before that leaves with an error.
  std::unique_ptr<ReplicaRendezvous> Join(const Key& key, int64_t place, int64_t size,
                                          ReplicaRendezvous::Participant participant);

  // Notes the end of a replica's run: it will join no further rendezvous of that run.
  void Ended(const std::string& run_group, int64_t run, int64_t replica);

 private:
  using Waiting = std::map<Key, std::list<std::unique_ptr<ReplicaRendezvous>>>;
  struct Ends {
    int64_t run = -1;
    std::set<int64_t> replicas;
  };
  struct UnreachableRendezvous {
    std::unique_ptr<ReplicaRendezvous> rendezvous;
    int64_t first = 0;    // replica of its group
    int64_t missing = 0;  // one that has not come
    bool is_late = false;  // else its run has ended
  };

  // Removes a replica from its rendezvous; false if that is already complete.
  bool RemoveLocked(const Key& key, int64_t place, tensorflow::CancellationToken token,
                    ReplicaRendezvous::Participant* participant) TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Cancel(const Key& key, int64_t place, tensorflow::CancellationToken token);
  // A missing replica whose run has already ended, or -1.
  int64_t MissingReplicaLocked(const Key& key, const ReplicaRendezvous& rendezvous) const
      TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::list<UnreachableRendezvous> TakeUnreachableLocked() TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void FailAll(std::list<UnreachableRendezvous> rendezvous_list);
  void Watch();

  tensorflow::mutex mutex_;
  Waiting waiting_ TF_GUARDED_BY(mutex_);
  std::map<std::string, Ends> ended_ TF_GUARDED_BY(mutex_);  // by program
  bool is_watched_ TF_GUARDED_BY(mutex_) = false;
};

}  // namespace tf_ipu_shim
