// An embedded application: a compiled program that runs in its own engine thread and answers calls. A call passes one
// element of each infeed and receives what the program sends to each outfeed for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "protocol/driver_messages.h"
#include "feeds/outfeeds.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

class Application {
 public:
  using Tensors = std::vector<tensorflow::Tensor>;
  // One waiting caller. `done` is called once, without a lock; `gone` is set afterwards.
  struct Waiter {
    std::function<void(const tensorflow::Status&, const Tensors&)> done;
    bool gone = false;
  };
  using WaiterPtr = std::shared_ptr<Waiter>;

  Application(std::string name, std::string file, Tensors inputs)
      : name_(std::move(name)), file_(std::move(file)), inputs_(std::move(inputs)) {}
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  const std::string& name() const { return name_; }
  const std::string& file() const { return file_; }
  const Tensors& inputs() const { return inputs_; }

  // Sets the program's description from Python. `timeout_us`: how long a batch waits on the IPUs for the next one.
  void Describe(ApplicationStarted program, int64_t timeout_us);

  // A call: `element` for the infeeds, `caller` gets the outfeeds' answer.
  tensorflow::Status Call(Tensors element, const WaiterPtr& caller);
  // Called when the program dequeues the next element of an infeed.
  void Take(size_t feed, const WaiterPtr& taker);
  // Called between runs: starts the next run if a call is waiting.
  void Begin(const WaiterPtr& gate);
  // Fails a waiter, unless it was answered before.
  void Refuse(const WaiterPtr& waiter, const tensorflow::Status& status);
  // Fails all waiters after a failed run. With `closes` no further run follows.
  void Fail(const tensorflow::Status& status, bool closes);

 private:
  struct Request {
    Tensors element;
    WaiterPtr caller;  // null for a batch that is made up
  };
  using Later = std::vector<std::function<void()>>;  // what is called when the lock is free again

  tensorflow::Status CheckElement(const Tensors& element) const;
  void Progress(Later* later);
  void HandOut(Later* later);
  void Collect(Later* later);
  void OpenGate(Later* later);
  void EndRun(Later* later);
  void FailRequests(size_t count, const tensorflow::Status& status, Later* later);
  bool TakenByAll(int64_t index) const;
  bool WaitsForMore() const;
  void WatchTime();
  static void Answer(const WaiterPtr& waiter, const tensorflow::Status& status, Tensors tensors, Later* later);

  const std::string name_, file_;
  const Tensors inputs_;
  ApplicationStarted program_;
  std::vector<std::shared_ptr<Outfeed>> outfeeds_;
  size_t feeds_ = 0;
  int64_t timeout_us_ = 0;

  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable changed_;
  std::deque<Request> requests_;  // in the order of the calls; answered from the front
  int64_t first_ = 0;             // the number of the first of them
  std::vector<int64_t> taken_;    // for each infeed the number of the next call that it takes
  std::vector<std::deque<WaiterPtr>> takers_;  // by infeed
  WaiterPtr gate_;
  bool ran_ = false;
  int64_t answered_ = 0;  // of this run
  int64_t events_ = 0;    // counts whatever moves, for the time-out
  tensorflow::Status broken_;
  bool closed_ = false;
  std::thread timer_;
};

}  // namespace tf_ipu_shim
