// What the instances of a job hand each other. Every two of them have a connected socket, which Python makes
// (`runtime/peers.py`). A message says which operation it is of, by a name and how many of that name there were before: so
// operations may begin in any order, several go on at the same time, and nobody waits for a thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

class Peers {
 public:
  // Memory of somebody else.
  struct Part {
    const char* data = nullptr;
    size_t size = 0;
  };
  // What an instance brings. `form` is compared by whoever gets it.
  struct Message {
    std::string title, form;
    std::unique_ptr<char[]> values;
    size_t size = 0;
    bool is_there = false;
  };
  // Gets the messages of all instances but this one, by rank. Called once, on a thread of its own or that of the caller.
  using Done = std::function<void(const tensorflow::Status&, std::vector<Message>)>;

  // Takes sockets over: one for each instance, -1 for this one. Lives as long as the process.
  Peers(int64_t rank, std::vector<int> sockets, std::vector<std::string> addresses, double seconds);

  // Gives values to all other instances, and takes theirs. `values` are there as long as `keeps` is.
  void Gather(const std::string& name, const std::string& title, const std::string& form, std::vector<Part> values,
              std::shared_ptr<const void> keeps, Done done);
  // Waits until what was given has left, and says that no more comes. Not longer than a second.
  void End();

  // Those that collectives of programs are among: null before they are known, and while Python says so.
  static Peers* OfPrograms();
  static void SetOfPrograms(Peers* peers);

 private:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<std::string, int64_t>;
  struct Exchange {
    std::vector<Message> given;  // by rank
    std::vector<bool> unsent;
    std::string title;
    Done done;  // null: this instance has not come
    Clock::time_point since;
  };
  struct Outgoing {
    Key key;
    std::string head;
    std::vector<Part> parts;  // `head` first
    std::shared_ptr<const void> keeps;
    size_t part = 0, at = 0;  // what has left
  };
  struct Link {
    int socket = -1;
    std::mutex sending;  // taken before `mutex_`
    std::deque<std::unique_ptr<Outgoing>> queue;
    std::condition_variable queued;
    std::string last_title;  // of `mutex_`: what it came to last
    Clock::time_point last;
  };
  struct Ready {
    Done done;
    std::vector<Message> given;
    tensorflow::Status status;
  };

  void Read(int64_t rank);
  void Write(int64_t rank);
  void Watch();
  void Send(int64_t rank, std::unique_ptr<Outgoing> message);
  // Sends what the socket takes; false where it takes no more now. Dropped where nobody is there.
  static bool SendSome(int socket, Outgoing* message);
  void Sent(int64_t rank, const Key& key);
  void Arrived(int64_t rank, const Key& key, Message message);
  void Gone(int64_t rank);
  Exchange& OfLocked(const Key& key);
  // Takes an exchange out that everything is there for.
  bool TakeLocked(const Key& key, Ready* ready);
  void FailLocked(const Key& key, const tensorflow::Status& status, std::vector<Ready>* ready);
  // No operation completes any more: those that wait end with a status, later ones with its text or another.
  void Break(const tensorflow::Status& status, const std::string& later);
  std::string LateLocked(const Exchange& exchange) const;
  tensorflow::Status Ended(int64_t rank, const std::string& title) const;
  static void Finish(std::vector<Ready> ready);

  const int64_t rank_;
  const std::vector<std::string> addresses_;
  const double seconds_;
  std::vector<std::unique_ptr<Link>> links_;
  std::mutex mutex_;
  std::condition_variable watched_;
  std::map<Key, Exchange> exchanges_;
  std::map<std::string, int64_t> numbers_;
  int64_t waiting_ = 0;
  std::vector<int64_t> gone_;
  std::string broken_;
};

}  // namespace tf_ipu_shim
