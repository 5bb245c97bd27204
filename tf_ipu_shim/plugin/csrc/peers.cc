#include "peers.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "interrupts.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/strcat.h"
#include "wait_limit.h"

namespace tf_ipu_shim {
namespace {

constexpr std::chrono::milliseconds kWatchEvery{200};
constexpr int kEndMilliseconds = 1000;

// In front of a message: how long its texts and its values are, and its operation's number.
struct MessageHead {
  uint64_t number, values;
  uint32_t name, title, form, reserved;
};

// Reads ahead, so that small messages take no call of the system each.
class SocketReader {
 public:
  explicit SocketReader(int socket) : socket_(socket), buffer_(new char[kBuffer]) {}

  bool Read(char* to, size_t size) {
    while (size > 0) {
      if (at_ == end_ && size >= kBuffer) {
        const ssize_t got = Receive(to, size);
        if (got <= 0) return false;
        to += got, size -= got;
        continue;
      }
      if (at_ == end_) {
        const ssize_t got = Receive(buffer_.get(), kBuffer);
        if (got <= 0) return false;
        at_ = 0, end_ = got;
      }
      const size_t some = std::min(size, end_ - at_);
      memcpy(to, buffer_.get() + at_, some);
      at_ += some, to += some, size -= some;
    }
    return true;
  }

  bool Read(std::string* to, size_t size) {
    to->resize(size);
    return Read(&(*to)[0], size);
  }

 private:
  static constexpr size_t kBuffer = 64 << 10;

  ssize_t Receive(char* to, size_t size) {
    ssize_t got;
    do {
      got = recv(socket_, to, size, 0);
    } while (got < 0 && errno == EINTR);
    return got;
  }

  const int socket_;
  const std::unique_ptr<char[]> buffer_;
  size_t at_ = 0, end_ = 0;
};

namespace strings = tensorflow::strings;

std::atomic<Peers*> peers_of_programs{nullptr};

}  // namespace

Peers* Peers::OfPrograms() { return peers_of_programs.load(std::memory_order_acquire); }
void Peers::SetOfPrograms(Peers* peers) { peers_of_programs.store(peers, std::memory_order_release); }

Peers::Peers(int64_t rank, std::vector<int> sockets, std::vector<std::string> addresses, double seconds)
    : rank_(rank), addresses_(std::move(addresses)), seconds_(seconds) {
  for (const int socket : sockets) {
    links_.push_back(std::make_unique<Link>());
    links_.back()->socket = socket;
    links_.back()->last = Clock::now();
  }
  for (size_t other = 0; other < links_.size(); ++other) {
    if (static_cast<int64_t>(other) == rank_) continue;
    std::thread([this, other] { Read(other); }).detach();
    std::thread([this, other] { Write(other); }).detach();
  }
  std::thread([this] { Watch(); }).detach();
}

void Peers::Gather(const std::string& name, const std::string& title, const std::string& form, std::vector<Part> values,
                   std::shared_ptr<const void> keeps, Done done) {
  Key key;
  std::vector<Ready> ready;
  bool is_broken = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    key = {name, numbers_[name]++};
    Exchange& exchange = OfLocked(key);
    exchange.title = title;
    exchange.done = std::move(done);
    exchange.since = Clock::now();
    exchange.unsent.assign(links_.size(), true);
    exchange.unsent[rank_] = false;
    ++waiting_;
    if (waiting_ == 1) watched_.notify_one();
    is_broken = !broken_.empty();
    if (is_broken) FailLocked(key, tensorflow::errors::Unknown(broken_), &ready);
    for (const int64_t other : gone_) {
      if (!ready.empty()) break;
      exchange.unsent[other] = false;
      if (!exchange.given[other].is_there) FailLocked(key, Ended(other, title), &ready);
    }
  }
  if (is_broken) return Finish(std::move(ready));
  // Also where it fails for want of one: the others then know who is missing, and who has come.
  MessageHead head = {};
  head.number = key.second;
  for (const Part& part : values) head.values += part.size;
  head.name = name.size(), head.title = title.size(), head.form = form.size();
  for (size_t other = 0; other < links_.size(); ++other) {
    if (static_cast<int64_t>(other) == rank_) continue;
    auto message = std::make_unique<Outgoing>();
    message->key = key;
    message->head.append(reinterpret_cast<const char*>(&head), sizeof head).append(name).append(title).append(form);
    message->parts.push_back({message->head.data(), message->head.size()});
    message->parts.insert(message->parts.end(), values.begin(), values.end());
    message->keeps = keeps;
    Send(other, std::move(message));
  }
  Finish(std::move(ready));
}

Peers::Exchange& Peers::OfLocked(const Key& key) {
  Exchange& exchange = exchanges_[key];
  exchange.given.resize(links_.size());
  return exchange;
}

// At once, as far as the socket takes it; what it does not take, the thread of the link sends.
void Peers::Send(int64_t rank, std::unique_ptr<Outgoing> message) {
  Link& link = *links_[rank];
  const Key key = message->key;
  {
    std::lock_guard<std::mutex> lock(link.sending);
    if (!link.queue.empty() || !SendSome(link.socket, message.get())) {
      link.queue.push_back(std::move(message));
      link.queued.notify_one();
      return;
    }
  }
  Sent(rank, key);
}

bool Peers::SendSome(int socket, Outgoing* message) {
  constexpr size_t kAtOnce = 64;
  while (message->part < message->parts.size()) {
    iovec pieces[kAtOnce];
    msghdr sent = {};
    sent.msg_iov = pieces;
    size_t at = message->at;
    for (size_t part = message->part; part < message->parts.size() && sent.msg_iovlen < kAtOnce; ++part, at = 0) {
      const Part& whole = message->parts[part];
      pieces[sent.msg_iovlen++] = {const_cast<char*>(whole.data) + at, whole.size - at};
    }
    const ssize_t count = sendmsg(socket, &sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (count < 0) return true;  // whoever reads is told that it has gone
    for (size_t left = count;;) {
      const size_t here = message->part < message->parts.size() ? message->parts[message->part].size - message->at : 0;
      if (message->part == message->parts.size() || left < here) {
        message->at += left;
        break;
      }
      left -= here;
      ++message->part, message->at = 0;
    }
  }
  return true;
}

void Peers::Write(int64_t rank) {
  Link& link = *links_[rank];
  std::unique_lock<std::mutex> lock(link.sending);
  for (;;) {
    link.queued.wait(lock, [&link] { return !link.queue.empty(); });
    while (!SendSome(link.socket, link.queue.front().get())) {
      lock.unlock();
      pollfd waits = {link.socket, POLLOUT, 0};
      poll(&waits, 1, -1);
      lock.lock();
    }
    const std::unique_ptr<Outgoing> message = std::move(link.queue.front());
    link.queue.pop_front();
    lock.unlock();
    Sent(rank, message->key);
    lock.lock();
  }
}

void Peers::Sent(int64_t rank, const Key& key) {
  std::vector<Ready> ready(1);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = exchanges_.find(key);
    if (found == exchanges_.end()) return;
    if (!found->second.unsent.empty()) found->second.unsent[rank] = false;
    if (!TakeLocked(key, &ready[0])) return;
  }
  Finish(std::move(ready));
}

void Peers::Read(int64_t rank) {
  SocketReader from(links_[rank]->socket);
  for (;;) {
    MessageHead head;
    Key key;
    Message message;
    if (!from.Read(reinterpret_cast<char*>(&head), sizeof head) || !from.Read(&key.first, head.name) ||
        !from.Read(&message.title, head.title) || !from.Read(&message.form, head.form)) {
      return Gone(rank);
    }
    key.second = head.number;
    message.size = head.values;
    message.values.reset(new char[message.size]);
    if (!from.Read(message.values.get(), message.size)) return Gone(rank);
    message.is_there = true;
    Arrived(rank, key, std::move(message));
  }
}

void Peers::Arrived(int64_t rank, const Key& key, Message message) {
  std::vector<Ready> ready(1);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    links_[rank]->last_title = message.title;
    links_[rank]->last = Clock::now();
    if (!broken_.empty()) return;
    OfLocked(key).given[rank] = std::move(message);
    if (!TakeLocked(key, &ready[0])) return;
  }
  Finish(std::move(ready));
}

bool Peers::TakeLocked(const Key& key, Ready* ready) {
  Exchange& exchange = exchanges_[key];
  if (exchange.done == nullptr) return false;
  for (size_t other = 0; other < links_.size(); ++other) {
    if (static_cast<int64_t>(other) == rank_) continue;
    if (exchange.unsent[other] || !exchange.given[other].is_there) return false;
  }
  *ready = {std::move(exchange.done), std::move(exchange.given), tensorflow::OkStatus()};
  exchanges_.erase(key);
  --waiting_;
  return true;
}

void Peers::FailLocked(const Key& key, const tensorflow::Status& status, std::vector<Ready>* ready) {
  const auto found = exchanges_.find(key);
  ready->push_back({std::move(found->second.done), {}, status});
  exchanges_.erase(found);
  --waiting_;
}

void Peers::Gone(int64_t rank) {
  std::vector<Ready> ready;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    gone_.push_back(rank);
    std::vector<Key> done, hopeless;
    for (auto& [key, exchange] : exchanges_) {
      if (exchange.done == nullptr) continue;
      exchange.unsent[rank] = false;
      (exchange.given[rank].is_there ? done : hopeless).push_back(key);
    }
    for (const Key& key : hopeless) FailLocked(key, Ended(rank, exchanges_[key].title), &ready);
    for (const Key& key : done) {
      Ready one;
      if (TakeLocked(key, &one)) ready.push_back(std::move(one));
    }
  }
  Finish(std::move(ready));
}

tensorflow::Status Peers::Ended(int64_t rank, const std::string& title) const {
  return tensorflow::errors::Unknown("Collective operation ", title, ": The process of rank ", rank,
                                     " has ended, or cannot be reached at ", addresses_[rank], " any more.");
}

// Who is missing, and where each was seen last.
std::string Peers::LateLocked(const Exchange& exchange) const {
  std::string text = strings::StrCat("Collective operation ", exchange.title, " in the process of rank ", rank_,
                                     ": not all ", links_.size(), " processes came to it within ", seconds_, " s.");
  for (size_t other = 0; other < links_.size(); ++other) {
    if (static_cast<int64_t>(other) == rank_ || exchange.given[other].is_there) continue;
    const Link& link = *links_[other];
    const auto ago = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - link.last).count();
    strings::StrAppend(&text, " That of rank ", other, " did not; ");
    if (link.last_title.empty()) {
      strings::StrAppend(&text, "it has come to none.");
    } else {
      strings::StrAppend(&text, "it came last to ", link.last_title, ", ", ago, " s ago.");
    }
  }
  return strings::StrCat(text, " It has stopped, or does something else. Start the job again, with more time in ",
                         kWaitLimitVariable, " where that is needed.");
}

void Peers::Break(const tensorflow::Status& status, const std::string& later) {
  std::vector<Ready> ready;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (broken_.empty()) broken_ = later;
    std::vector<Key> keys;
    for (const auto& [key, exchange] : exchanges_) {
      if (exchange.done != nullptr) keys.push_back(key);
    }
    for (const Key& key : keys) FailLocked(key, status, &ready);
    exchanges_.clear();
  }
  Finish(std::move(ready));
}

void Peers::Watch() {
  for (;;) {
    tensorflow::Status status;
    std::string later;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      watched_.wait(lock, [this] { return waiting_ > 0; });
      watched_.wait_for(lock, kWatchEvery);
      const auto latest = Clock::now() - std::chrono::duration<double>(seconds_);
      const Exchange* first = nullptr;
      for (const auto& [key, exchange] : exchanges_) {
        if (exchange.done == nullptr || exchange.since > latest) continue;
        if (first == nullptr || exchange.since < first->since) first = &exchange;
      }
      if (first != nullptr) {
        later = LateLocked(*first);
        status = tensorflow::errors::Unknown(later);
      } else if (waiting_ > 0 && Interrupted()) {
        later = "Ctrl-C has ended what this process was in with the others of its job. Start the job again.";
        status = InterruptedError("A collective operation");
      }
    }
    if (!status.ok()) Break(status, later);
  }
}

void Peers::Finish(std::vector<Ready> ready) {
  for (Ready& one : ready) one.done(one.status, std::move(one.given));
}

void Peers::End() {
  const auto latest = Clock::now() + std::chrono::milliseconds(kEndMilliseconds);
  for (const std::unique_ptr<Link>& link : links_) {
    if (link->socket < 0) continue;
    for (int left = 1; left != 0 && Clock::now() < latest;) {
      {
        std::lock_guard<std::mutex> lock(link->sending);
        left = static_cast<int>(link->queue.size());
      }
      if (left == 0 && ioctl(link->socket, SIOCOUTQ, &left) != 0) left = 0;
      if (left != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    shutdown(link->socket, SHUT_WR);
  }
}

// What Python calls.
namespace {

struct Handing {
  std::mutex mutex;
  std::condition_variable over;
  bool is_over = false;
  tensorflow::Status status;
  std::vector<Peers::Message> given;
};
using SharedHanding = std::shared_ptr<Handing>;

}  // namespace
}  // namespace tf_ipu_shim

using namespace tf_ipu_shim;  // NOLINT: the C interface of that namespace

extern "C" {

void* ipu_peers(int64_t rank, int64_t size, const int32_t* sockets, const char* const* addresses, double seconds) {
  return new Peers(rank, std::vector<int>(sockets, sockets + size),
                   std::vector<std::string>(addresses, addresses + size), seconds);
}

// Whether programs of several instances meet among them. Null: they ask Python first.
void ipu_peers_of_programs(void* peers) { Peers::SetOfPrograms(static_cast<Peers*>(peers)); }

void ipu_end_peers(void* peers) { static_cast<Peers*>(peers)->End(); }

// Begins to hand values round; what is returned is asked for the others', and dropped then.
void* ipu_hand_round(void* peers, const char* name, const char* title, const char* values, int64_t size) {
  auto handing = std::make_shared<Handing>();
  auto kept = std::make_shared<std::string>(values, static_cast<size_t>(size));
  static_cast<Peers*>(peers)->Gather(
      name, title, "", {{kept->data(), kept->size()}}, kept,
      [handing](const tensorflow::Status& status, std::vector<Peers::Message> given) {
        std::lock_guard<std::mutex> lock(handing->mutex);
        handing->status = status;
        handing->given = std::move(given);
        handing->is_over = true;
        handing->over.notify_all();
      });
  return new SharedHanding(handing);
}

// Whether it is over, after so long at most. Python looks after signals in between.
int32_t ipu_is_handed_round(void* handing, int64_t milliseconds) {
  Handing& one = **static_cast<SharedHanding*>(handing);
  std::unique_lock<std::mutex> lock(one.mutex);
  return one.over.wait_for(lock, std::chrono::milliseconds(milliseconds), [&one] { return one.is_over; });
}

// What an instance gave; of one that there is not, what went wrong. Null where nothing did.
const char* ipu_handed_by(void* handing, int64_t rank, int64_t* size) {
  const Handing& one = **static_cast<SharedHanding*>(handing);
  if (rank < 0) {
    *size = static_cast<int64_t>(one.status.message().size());
    return one.status.ok() ? nullptr : one.status.message().data();
  }
  *size = static_cast<int64_t>(one.given[rank].size);
  return one.given[rank].values.get();
}

void ipu_drop_handed(void* handing) { delete static_cast<SharedHanding*>(handing); }

}  // extern "C"
