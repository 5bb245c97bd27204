// Runs tiles in parallel on one pool of threads for the process.
#include "poplar/engine/float_checks.hpp"

#include <poplar/detail/kernel.hpp>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace poplar::detail {

namespace {

using Body = std::function<void(std::size_t, std::size_t)>;

// One call of parallelFor: its caller and the threads take parts until none is left.
class Job {
 public:
  Job(std::size_t count, std::size_t part, const Body& body) : count_(count), part_(part), body_(body) {}

  void work() {
    for (;;) {
      const std::size_t begin = next_.fetch_add(part_);
      if (begin >= count_) return;
      const std::size_t end = std::min(count_, begin + part_);
      try {
        body_(begin, end);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ += end - begin;
      if (done_ == count_) ended_.notify_all();
    }
  }
  bool hasWork() const { return next_.load() < count_; }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [&] { return done_ == count_; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::size_t count_, part_;
  const Body& body_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t done_ = 0;
  std::exception_ptr error_;
};

thread_local bool within_part = false;

std::size_t cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
  return std::max(1u, std::thread::hardware_concurrency());
}

class Pool {
 public:
  // Never destroyed: programs may end while a thread sleeps. A forked child starts its own threads.
  static Pool& get() {
    static std::atomic<Pool*> pool{new Pool};
    static const int registered = pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
    (void)registered;
    return *pool;
  }

  std::size_t size() const { return threads_; }

  void run(std::size_t count, std::size_t part, const Body& body) {
    start();
    auto job = std::make_shared<Job>(count, part, body);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      jobs_.push_back(job);
    }
    wake_.notify_all();
    within_part = true;
    job->work();
    within_part = false;
    job->wait();
  }

 private:
  void start() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (; started_ + 1 < threads_; ++started_) std::thread([this] { serve(); }).detach();
  }
  void serve() {
    within_part = true;
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] {
          while (!jobs_.empty() && !jobs_.front()->hasWork()) jobs_.pop_front();
          return !jobs_.empty();
        });
        job = jobs_.front();
      }
      job->work();
    }
  }

  const std::size_t threads_ = cores();
  std::size_t started_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Job>> jobs_;
};

}  // namespace

Serial::Serial() : before_(within_part) { within_part = true; }
Serial::~Serial() { within_part = before_; }

void parallelFor(std::size_t count, std::size_t grain, const Body& body) {
  if (count == 0) return;
  Pool& pool = Pool::get();
  // More parts than threads, so that unequal ones even out.
  const std::size_t part = std::max<std::size_t>({grain, 1, count / (8 * pool.size())});
  if (within_part || pool.size() == 1 || part >= count) return body(0, count);
  pool.run(count, part, body);
}

}  // namespace poplar::detail
