#include "replicas/rendezvous.h"

#include <thread>
#include <utility>

#include "programs/program_runs.h"
#include "tensorflow/core/platform/errors.h"
#include "replicas/wait_limit.h"

namespace tf_ipu_shim {

using namespace tensorflow;  // NOLINT: this file has TensorFlow's ops wait

constexpr std::chrono::milliseconds kLook{200};  // how often somebody looks after those that wait

Meetings& Meetings::Get() {
  static auto* meetings = new Meetings;
  return *meetings;
}

std::unique_ptr<Meeting> Meetings::Join(const Key& key, int64_t place, int64_t size, Meeting::Arrival arrival) {
  CancellationManager* const manager = arrival.context->cancellation_manager();
  const CancellationToken token = arrival.token;
  {
    mutex_lock lock(mutex_);
    std::list<std::unique_ptr<Meeting>>& waiting = waiting_[key];
    auto at = waiting.begin();
    while (at != waiting.end() && (*at)->arrivals[place].context != nullptr) ++at;
    if (at == waiting.end()) at = waiting.insert(at, std::make_unique<Meeting>(size));
    arrival.since = std::chrono::steady_clock::now();
    (*at)->arrivals[place] = std::move(arrival);
    if (++(*at)->arrived == size) {
      std::unique_ptr<Meeting> complete = std::move(*at);
      waiting.erase(at);
      if (waiting.empty()) waiting_.erase(key);
      return complete;
    }
    if (!is_watched_) {
      is_watched_ = true;
      std::thread([this] { Watch(); }).detach();
    }
    // Under the lock: without it the last replica may come now, the step end, and the manager be gone. The manager calls
    // back under no lock of its own.
    if (manager->RegisterCallback(token, [this, key, place, token] { Cancel(key, place, token); })) return nullptr;
  }
  Cancel(key, place, token);
  return nullptr;
}

void Meetings::Cancel(const Key& key, int64_t place, CancellationToken token) {
  Meeting::Arrival arrival;
  {
    mutex_lock lock(mutex_);
    if (!RemoveLocked(key, place, token, &arrival)) return;
  }
  // Derived: TensorFlow then reports the failure that it follows from.
  arrival.context->SetStatus(StatusGroup::MakeDerived(
      errors::Cancelled("Collective ", arrival.op, " was cancelled: another replica failed")));
  arrival.done();
}

bool Meetings::RemoveLocked(const Key& key, int64_t place, CancellationToken token, Meeting::Arrival* arrival) {
  const auto known = waiting_.find(key);
  if (known == waiting_.end()) return false;
  for (auto at = known->second.begin(); at != known->second.end(); ++at) {
    Meeting::Arrival& here = (*at)->arrivals[place];
    if (here.context == nullptr || here.token != token) continue;
    *arrival = std::exchange(here, Meeting::Arrival());
    if (--(*at)->arrived == 0) known->second.erase(at);
    if (known->second.empty()) waiting_.erase(known);
    return true;
  }
  return false;
}

void Meetings::Ended(const std::string& run_group, int64_t run, int64_t replica) {
  std::list<Hopeless> hopeless;
  {
    mutex_lock lock(mutex_);
    Ends& ends = ended_[run_group];
    if (ends.run != run) ends = {run, {}};
    ends.replicas.insert(replica);
    hopeless = HopelessLocked();
  }
  SendAway(std::move(hopeless));
}

int64_t Meetings::MissedLocked(const Key& key, const Meeting& meeting) const {
  const auto& [run_group, number, group, iteration] = key;
  const auto ends = ended_.find(run_group);
  if (ends == ended_.end() || ends->second.run != RunNumberOf(run_group)) return -1;
  const int64_t size = meeting.arrivals.size();
  for (int64_t place = 0; place < size; ++place) {
    const int64_t replica = group * size + place;
    if (meeting.arrivals[place].context == nullptr && ends->second.replicas.count(replica) > 0) return replica;
  }
  return -1;
}

std::list<Meetings::Hopeless> Meetings::HopelessLocked() {
  std::list<Hopeless> found;
  const auto latest = std::chrono::steady_clock::now() - WaitLimit();
  for (auto key = waiting_.begin(); key != waiting_.end();) {
    for (auto at = key->second.begin(); at != key->second.end();) {
      const int64_t first = std::get<2>(key->first) * static_cast<int64_t>((*at)->arrivals.size());
      int64_t missing = MissedLocked(key->first, **at);
      const bool is_late = missing < 0;
      for (size_t place = 0; missing < 0 && place < (*at)->arrivals.size(); ++place) {
        const Meeting::Arrival& arrival = (*at)->arrivals[place];
        if (arrival.context == nullptr || arrival.since > latest) continue;
        for (missing = first; (*at)->arrivals[missing - first].context != nullptr;) ++missing;
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

void Meetings::SendAway(std::list<Hopeless> meetings) {
  for (Hopeless& hopeless : meetings) {
    const std::string reason =
        hopeless.is_late ? strings::StrCat("not come to it in ", WaitLimit().count() / 1000.0, " s (as ",
                                           kWaitLimitVariable, " sets)")
                         : "ended its run without it";
    std::vector<Meeting::Arrival>& arrivals = hopeless.meeting->arrivals;
    for (size_t place = 0; place < arrivals.size(); ++place) {
      Meeting::Arrival& arrival = arrivals[place];
      if (arrival.context == nullptr) continue;
      // Not `DeregisterCallback`: that would wait for a callback that finds nobody here any more.
      arrival.context->cancellation_manager()->TryDeregisterCallback(arrival.token);
      const std::string text = strings::StrCat(
          "Collective ", arrival.op, ": replica ", hopeless.first + place, " waits for replica ", hopeless.missing,
          ", which has ", reason, ". All replicas have to reach a collective equally often: take it out of the branch ",
          "or loop that only some of them run.");
      arrival.context->SetStatus(hopeless.is_late ? Status(errors::DeadlineExceeded(text))
                                                  : Status(errors::FailedPrecondition(text)));
      arrival.done();
    }
  }
}

void Meetings::Watch() {
  for (;;) {
    std::this_thread::sleep_for(kLook);
    std::list<Hopeless> hopeless;
    {
      mutex_lock lock(mutex_);
      hopeless = HopelessLocked();
      if (waiting_.empty() && hopeless.empty()) {
        is_watched_ = false;
        return;
      }
    }
    SendAway(std::move(hopeless));
  }
}

}  // namespace tf_ipu_shim
