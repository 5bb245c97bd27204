// Outfeed queues: elements that running programs send to the host. One queue per feed id and process: a program of one
// session enqueues, and any thread, session or eager call dequeues.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/mutex.h"

namespace tf_ipu_shim {

inline constexpr char kOutfeedAll[] = "all";
inline constexpr char kOutfeedLast[] = "get_last";
// Of a feed's runs that have not ended, or have failed: more than run at a time.
inline constexpr size_t kMostRuns = 64;

// The queue of one outfeed. Each replica has its own, as replicas need not advance together.
class Outfeed {
 public:
  using Element = std::vector<tensorflow::Tensor>;
  void Put(Element element, bool only_last, size_t replica, size_t replicas, int64_t run) {
    std::function<void()> listener;
    {
      tensorflow::mutex_lock lock(mutex_);
      PutLocked(std::move(element), only_last, replica, replicas, run);
      listener = listener_;
    }
    if (listener) listener();
  }
  // Sets a function that is called, without a lock, after each enqueued element.
  void SetListener(std::function<void()> listener) {
    tensorflow::mutex_lock lock(mutex_);
    listener_ = std::move(listener);
  }
  // Whether the replica has an element.
  bool Has(size_t replica) {
    tensorflow::mutex_lock lock(mutex_);
    return replica < elements_.size() && !elements_[replica].empty();
  }
  // The oldest element of a replica that has one.
  Element TakeOne(size_t replica) {
    tensorflow::mutex_lock lock(mutex_);
    Element element = std::move(elements_[replica].front());
    elements_[replica].pop_front();
    return element;
  }
  // Drops all elements; returns whether there were any.
  bool Clear() {
    tensorflow::mutex_lock lock(mutex_);
    bool any = false;
    for (std::deque<Element>& elements : elements_) {
      any |= !elements.empty();
      elements.clear();
    }
    any |= !incomplete_.empty();
    incomplete_.clear();
    return any;
  }
  // Dequeues all complete rows: each replica's elements of the iterations that every replica has enqueued.
  std::vector<std::deque<Element>> TakeAll() {
    tensorflow::mutex_lock lock(mutex_);
    std::vector<std::deque<Element>> taken(elements_.size());
    for (size_t rows = Rows(); rows > 0; --rows) {
      for (size_t replica = 0; replica < elements_.size(); ++replica) {
        taken[replica].push_back(std::move(elements_[replica].front()));
        elements_[replica].pop_front();
      }
    }
    return taken;
  }
  // The newest element of each replica; empty where a replica has none.
  std::vector<Element> Last() {
    tensorflow::mutex_lock lock(mutex_);
    std::vector<Element> last;
    if (Rows() == 0) return last;
    for (const std::deque<Element>& elements : elements_) last.push_back(elements.back());
    return last;
  }
  // Records the zero elements that a compiled but not executed program would have enqueued on each replica.
  void PutZeros(int64_t rows, int32_t replicas) {
    tensorflow::mutex_lock lock(mutex_);
    zeros_.rows += rows;
    zeros_.replicas = replicas;
  }
  struct Zeros {
    int64_t rows = 0;
    int32_t replicas = 1;
  };
  Zeros TakeZeros() {
    tensorflow::mutex_lock lock(mutex_);
    const Zeros taken = zeros_;
    zeros_.rows = 0;
    return taken;
  }
  // The same for the newest element, which stays.
  Zeros LastZeros() {
    tensorflow::mutex_lock lock(mutex_);
    return zeros_;
  }

 private:
  void PutLocked(Element element, bool only_last, size_t replica, size_t replicas, int64_t run)
      TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (elements_.size() != replicas) {
      elements_.assign(replicas, {});
      incomplete_.clear();
    }
    // A run's rows are complete when each replica has enqueued its element: runs of programs that share the outfeed may
    // overlap. The rest of a failed run's last iteration stays incomplete.
    std::vector<std::deque<Element>>& rows = incomplete_[run];
    rows.resize(replicas);
    rows[replica].push_back(std::move(element));
    if (std::any_of(rows.begin(), rows.end(), [](const std::deque<Element>& of_replica) { return of_replica.empty(); })) {
      if (incomplete_.size() > kMostRuns) incomplete_.erase(incomplete_.begin());
      return;
    }
    for (size_t each = 0; each < replicas; ++each) {
      if (only_last) elements_[each].clear();
      elements_[each].push_back(std::move(rows[each].front()));
      rows[each].pop_front();
    }
    if (std::all_of(rows.begin(), rows.end(), [](const std::deque<Element>& of_replica) { return of_replica.empty(); })) {
      incomplete_.erase(run);
    }
  }
  size_t Rows() const TF_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (elements_.empty()) return 0;
    size_t rows = elements_[0].size();
    for (const std::deque<Element>& elements : elements_) rows = std::min(rows, elements.size());
    return rows;
  }

  tensorflow::mutex mutex_;
  std::vector<std::deque<Element>> elements_ TF_GUARDED_BY(mutex_);  // by replica
  std::map<int64_t, std::vector<std::deque<Element>>> incomplete_ TF_GUARDED_BY(mutex_);  // by run and replica
  std::function<void()> listener_ TF_GUARDED_BY(mutex_);
  Zeros zeros_ TF_GUARDED_BY(mutex_);
};

class Outfeeds {
 public:
  static Outfeeds& Get() {
    static auto* outfeeds = new Outfeeds;
    return *outfeeds;
  }
  std::shared_ptr<Outfeed> Of(const std::string& feed_id) {
    tensorflow::mutex_lock lock(mutex_);
    std::shared_ptr<Outfeed>& outfeed = by_id_[feed_id];
    if (outfeed == nullptr) outfeed = std::make_shared<Outfeed>();
    return outfeed;
  }
  bool Delete(const std::string& feed_id) {
    tensorflow::mutex_lock lock(mutex_);
    return by_id_.erase(feed_id) > 0;
  }

 private:
  tensorflow::mutex mutex_;
  std::map<std::string, std::shared_ptr<Outfeed>> by_id_ TF_GUARDED_BY(mutex_);
};

}  // namespace tf_ipu_shim
