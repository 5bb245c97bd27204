// Implements the rendezvous of replicas: joining, cancelling, timing out.
#include "replicas/rendezvous.h"

#include <thread>
#include <utility>

#include "programs/program_runs.h"
#include "tensorflow/core/platform/errors.h"
#include "replicas/wait_limit.h"

namespace tf_ipu_shim {

using namespace tensorflow;  // NOLINT: this file has TensorFlow's ops wait

constexpr std::chrono::milliseconds kWatchInterval{200};  // how often somebody looks after those that wait

ReplicaRendezvousManager& ReplicaRendezvousManager::Get() {
  static auto* rendezvous_list = new ReplicaRendezvousManager;
  return *rendezvous_list;
}

std::unique_ptr<ReplicaRendezvous> ReplicaRendezvousManager::Join(const Key& key, int64_t place, int64_t size,
                                                                  ReplicaRendezvous::Participant participant) {
  CancellationManager* const manager = participant.context->cancellation_manager();
  const CancellationToken token = participant.token;
  {
    mutex_lock lock(mutex_);
    std::list<std::unique_ptr<ReplicaRendezvous>>& waiting = waiting_[key];
    auto at = waiting.begin();
    while (at != waiting.end() && (*at)->participants[place].context != nullptr) ++at;
    if (at == waiting.end()) at = waiting.insert(at, std::make_unique<ReplicaRendezvous>(size));
    participant.since = std::chrono::steady_clock::now();
    (*at)->participants[place] = std::move(participant);
    if (++(*at)->num_arrived == size) {
      std::unique_ptr<ReplicaRendezvous> complete = std::move(*at);
      waiting.erase(at);
      if (waiting.empty()) waiting_.erase(key);
      return complete;
    }
    if (!is_watched_) {
      is_watched_ = true;
      std::thread([this] { Watch(); }).detach();
    }
    // Holds the lock: otherwise the last replica could arrive now, end the step and delete the manager. The manager
    // holds no lock when it calls back.
    if (manager->RegisterCallback(token, [this, key, place, token] { Cancel(key, place, token); })) return nullptr;
  }
  Cancel(key, place, token);
  return nullptr;
}

void ReplicaRendezvousManager::Cancel(const Key& key, int64_t place, CancellationToken token) {
  ReplicaRendezvous::Participant participant;
  {
    mutex_lock lock(mutex_);
    if (!RemoveLocked(key, place, token, &participant)) return;
  }
  // Derived: TensorFlow then reports the failure that it follows from.
  participant.context->SetStatus(StatusGroup::MakeDerived(
      errors::Cancelled("Collective ", participant.op, " was cancelled: another replica failed")));
  participant.done();
}

bool ReplicaRendezvousManager::RemoveLocked(const Key& key, int64_t place, CancellationToken token,
                                            ReplicaRendezvous::Participant* participant) {
  const auto known = waiting_.find(key);
  if (known == waiting_.end()) return false;
  for (auto at = known->second.begin(); at != known->second.end(); ++at) {
    ReplicaRendezvous::Participant& here = (*at)->participants[place];
    if (here.context == nullptr || here.token != token) continue;
    *participant = std::exchange(here, ReplicaRendezvous::Participant());
    if (--(*at)->num_arrived == 0) known->second.erase(at);
    if (known->second.empty()) waiting_.erase(known);
    return true;
  }
  return false;
}

void ReplicaRendezvousManager::Ended(const std::string& run_group, int64_t run, int64_t replica) {
  std::list<UnreachableRendezvous> unreachable;
  {
    mutex_lock lock(mutex_);
    Ends& ends = ended_[run_group];
    if (ends.run != run) ends = {run, {}};
    ends.replicas.insert(replica);
    unreachable = TakeUnreachableLocked();
  }
  FailAll(std::move(unreachable));
}

int64_t ReplicaRendezvousManager::MissingReplicaLocked(const Key& key, const ReplicaRendezvous& rendezvous) const {
  const auto& [run_group, number, group, iteration] = key;
  const auto ends = ended_.find(run_group);
  if (ends == ended_.end() || ends->second.run != RunNumberOf(run_group)) return -1;
  const int64_t size = rendezvous.participants.size();
  for (int64_t place = 0; place < size; ++place) {
    const int64_t replica = group * size + place;
    if (rendezvous.participants[place].context == nullptr && ends->second.replicas.count(replica) > 0) return replica;
  }
  return -1;
}

std::list<ReplicaRendezvousManager::UnreachableRendezvous> ReplicaRendezvousManager::TakeUnreachableLocked() {
  std::list<UnreachableRendezvous> found;
  const auto latest = std::chrono::steady_clock::now() - WaitLimit();
  for (auto key = waiting_.begin(); key != waiting_.end();) {
    for (auto at = key->second.begin(); at != key->second.end();) {
      const int64_t first = std::get<2>(key->first) * static_cast<int64_t>((*at)->participants.size());
      int64_t missing = MissingReplicaLocked(key->first, **at);
      const bool is_late = missing < 0;
      for (size_t place = 0; missing < 0 && place < (*at)->participants.size(); ++place) {
        const ReplicaRendezvous::Participant& participant = (*at)->participants[place];
        if (participant.context == nullptr || participant.since > latest) continue;
        for (missing = first; (*at)->participants[missing - first].context != nullptr;) ++missing;
      }
      if (missing < 0) {
        ++at;
        continue;
      }
      found.push_back({std::move(*at), first, missing, is_late});
      at = key->second.erase(at);
    }
    key = key->second.empty() ? waiting_.erase(key) : std::next(key);
  }
  return found;
}

void ReplicaRendezvousManager::FailAll(std::list<UnreachableRendezvous> rendezvous_list) {
  for (UnreachableRendezvous& unreachable : rendezvous_list) {
    const std::string reason = unreachable.is_late ? strings::StrCat("not come to it in ", WaitLimit().count() / 1000.0,
                                                                     " s (as ", kWaitLimitVariable, " sets)")
                                                   : "ended its run without it";
    std::vector<ReplicaRendezvous::Participant>& participants = unreachable.rendezvous->participants;
    for (size_t place = 0; place < participants.size(); ++place) {
      ReplicaRendezvous::Participant& participant = participants[place];
      if (participant.context == nullptr) continue;
      // Not `DeregisterCallback`: that would wait for a callback that finds no run here any more.
      participant.context->cancellation_manager()->TryDeregisterCallback(participant.token);
      const std::string text =
          strings::StrCat("Collective ", participant.op, ": replica ", unreachable.first + place, " waits for replica ",
                          unreachable.missing, ", which has ", reason,
                          ". All replicas have to reach a collective equally often: take it out of the branch ",
                          "or loop that only some of them run.");
      participant.context->SetStatus(unreachable.is_late ? Status(errors::DeadlineExceeded(text))
                                                         : Status(errors::FailedPrecondition(text)));
      participant.done();
    }
  }
}

void ReplicaRendezvousManager::Watch() {
  for (;;) {
    std::this_thread::sleep_for(kWatchInterval);
    std::list<UnreachableRendezvous> unreachable;
    {
      mutex_lock lock(mutex_);
      unreachable = TakeUnreachableLocked();
      if (waiting_.empty() && unreachable.empty()) {
        is_watched_ = false;
        return;
      }
    }
    FailAll(std::move(unreachable));
  }
}

}  // namespace tf_ipu_shim
