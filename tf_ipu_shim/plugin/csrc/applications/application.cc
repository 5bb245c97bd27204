// Matches the calls of an embedded application with the batches that its program dequeues and the results it enqueues.
#include "applications/application.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {

using namespace tensorflow;  // NOLINT: this file hands TensorFlow's tensors on

namespace {

void CallAll(const std::vector<std::function<void()>>& calls) {
  for (const auto& call : calls) call();
}

TensorShape ShapeOf(const ApplicationTensor& tensor) {
  TensorShape shape;
  for (const int64_t size : tensor.shape) shape.AddDim(size);
  return shape;
}

}  // namespace

Application::~Application() {
  for (const auto& outfeed : outfeeds_) outfeed->SetListener(nullptr);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  if (timer_.joinable()) timer_.join();
}

void Application::Describe(ApplicationStarted program, int64_t timeout_us) {
  std::lock_guard<std::mutex> lock(mutex_);
  program_ = std::move(program);
  timeout_us_ = timeout_us;
  for (const ApplicationTensor& tensor : program_.infeeds) feeds_ = std::max<size_t>(feeds_, tensor.feed + 1);
  taken_.assign(feeds_, 0);
  takers_.resize(feeds_);
  for (const std::string& id : program_.outfeed_ids) {
    outfeeds_.push_back(Outfeeds::Get().Of(id));
    outfeeds_.back()->SetListener([this] {
      Later later;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        Progress(&later);
      }
      CallAll(later);
    });
  }
  // One replica gives each result without waiting for another batch.
  if (program_.replicas > 1 && feeds_ > 0) timer_ = std::thread([this] { WatchTime(); });
}

Status Application::CheckElement(const Tensors& element) const {
  if (element.size() != program_.infeeds.size()) {
    return errors::InvalidArgument("Embedded application call of engine '", name_, "' expects ",
                                   program_.infeeds.size(), " inputs, but ", element.size(), " were provided.");
  }
  for (size_t i = 0; i < element.size(); ++i) {
    const ApplicationTensor& expected = program_.infeeds[i];
    const auto type = static_cast<DataType>(expected.type);
    if (element[i].dtype() != type || element[i].shape() != ShapeOf(expected)) {
      return errors::InvalidArgument("Input ", i, " of a call of engine '", name_, "' is ",
                                     DataTypeString(element[i].dtype()), " of shape ", element[i].shape().DebugString(),
                                     "; the application was compiled for ", DataTypeString(type), " of shape ",
                                     ShapeOf(expected).DebugString(), ".");
    }
  }
  return OkStatus();
}

Status Application::Call(Tensors element, const WaiterPtr& caller) {
  Later later;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return errors::Cancelled("Engine '", name_, "' has ended.");
    TF_RETURN_IF_ERROR(broken_);
    if (caller != nullptr) TF_RETURN_IF_ERROR(CheckElement(element));
    requests_.push_back({std::move(element), caller});
    Progress(&later);
  }
  CallAll(later);
  return OkStatus();
}

void Application::Take(size_t feed, const WaiterPtr& taker) {
  Later later;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_ || feed >= feeds_) {
      Answer(taker, errors::Cancelled("Engine '", name_, "' has ended."), {}, &later);
    } else if (!taker->gone) {
      takers_[feed].push_back(taker);
      Progress(&later);
    }
  }
  CallAll(later);
}

void Application::Begin(const WaiterPtr& gate) {
  Later later;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) {
      Answer(gate, errors::Cancelled("Engine '", name_, "' has ended."), {}, &later);
    } else if (!gate->gone) {
      if (ran_) EndRun(&later);
      answered_ = 0;
      gate_ = gate;
      Progress(&later);
    }
  }
  CallAll(later);
}

void Application::Refuse(const WaiterPtr& waiter, const Status& status) {
  Later later;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Answer(waiter, status, {}, &later);
  }
  CallAll(later);
}

void Application::Fail(const Status& status, bool closes) {
  Later later;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ |= closes;
    FailRequests(requests_.size(), status, &later);
    for (size_t feed = 0; feed < feeds_; ++feed) {
      taken_[feed] = first_;
      for (const WaiterPtr& taker : takers_[feed]) Answer(taker, errors::Cancelled("The run has failed."), {}, &later);
      takers_[feed].clear();
    }
    for (const auto& outfeed : outfeeds_) outfeed->Clear();
    answered_ = 0;
    ran_ = false;
    if (closed_ && gate_ != nullptr) {
      Answer(gate_, errors::Cancelled("Engine '", name_, "' has ended."), {}, &later);
      gate_ = nullptr;
    }
    ++events_;
    changed_.notify_all();
  }
  CallAll(later);
}

void Application::Answer(const WaiterPtr& waiter, const Status& status, Tensors tensors, Later* later) {
  if (waiter == nullptr || waiter->gone) return;
  waiter->gone = true;
  later->push_back([waiter, status, tensors = std::move(tensors)] { waiter->done(status, tensors); });
}

bool Application::TakenByAll(int64_t index) const {
  return std::all_of(taken_.begin(), taken_.end(), [index](int64_t next) { return next > index; });
}

void Application::Progress(Later* later) {
  OpenGate(later);
  HandOut(later);
  Collect(later);
  ++events_;
  changed_.notify_all();
}

void Application::HandOut(Later* later) {
  for (size_t feed = 0; feed < feeds_; ++feed) {
    std::deque<WaiterPtr>& takers = takers_[feed];
    while (!takers.empty() && taken_[feed] < first_ + static_cast<int64_t>(requests_.size())) {
      const WaiterPtr taker = std::move(takers.front());
      takers.pop_front();
      if (taker->gone) continue;
      const Tensors& element = requests_[taken_[feed] - first_].element;
      Tensors part;
      for (size_t i = 0; i < element.size(); ++i) {
        if (program_.infeeds[i].feed == static_cast<int32_t>(feed)) part.push_back(element[i]);
      }
      ++taken_[feed];
      Answer(taker, OkStatus(), std::move(part), later);
    }
  }
}

// Answers calls from the first on, as far as results are there.
void Application::Collect(Later* later) {
  while (!requests_.empty() && TakenByAll(first_)) {
    // Replicas receive elements in rotation and return results in the same order.
    const size_t replica = answered_ % std::max(1, program_.replicas);
    for (const auto& outfeed : outfeeds_) {
      if (!outfeed->Has(replica)) return;
    }
    Tensors results;
    for (const auto& outfeed : outfeeds_) {
      for (Tensor& tensor : outfeed->TakeOne(replica)) results.push_back(std::move(tensor));
    }
    Answer(requests_.front().caller, OkStatus(), std::move(results), later);
    requests_.pop_front();
    ++first_;
    ++answered_;
  }
}

void Application::OpenGate(Later* later) {
  if (gate_ == nullptr) return;
  if (!broken_.ok()) FailRequests(requests_.size(), broken_, later);
  if (gate_->gone) {
    gate_ = nullptr;
    return;
  }
  if (feeds_ == 0) Collect(later);  // what an earlier run has sent is still to be given out
  if (requests_.empty()) return;
  ran_ = true;
  Answer(gate_, OkStatus(), {}, later);
  gate_ = nullptr;
}

// The run has ended: each batch that it consumed needs one answer, and no other answers may remain.
void Application::EndRun(Later* later) {
  ran_ = false;
  Collect(later);
  if (feeds_ == 0) return;
  const int64_t last = *std::max_element(taken_.begin(), taken_.end());
  const bool unequal = *std::min_element(taken_.begin(), taken_.end()) != last;
  const int64_t unanswered = last - first_;
  bool left = false;
  for (const auto& outfeed : outfeeds_) left |= outfeed->Clear();
  if (unanswered <= 0 && !unequal && !left) return;
  broken_ = errors::InvalidArgument(
      "The application of engine '", name_, "' cannot be called batch by batch: in a run it ",
      unequal ? "takes different numbers of elements from its infeeds"
              : (left ? "sends more results to an outfeed than it receives batches"
                      : "sends fewer results to an outfeed than it receives batches"),
      ". Enqueue to each outfeed once for each element that is dequeued.");
  FailRequests(requests_.size(), broken_, later);
}

void Application::FailRequests(size_t count, const Status& status, Later* later) {
  for (; count > 0; --count) {
    Answer(requests_.front().caller, status, {}, later);
    requests_.pop_front();
    ++first_;
  }
  for (int64_t& next : taken_) next = std::max(next, first_);
}

bool Application::WaitsForMore() const {
  if (requests_.empty() || taken_[0] <= first_ || takers_[0].empty()) return false;
  return taken_[0] == first_ + static_cast<int64_t>(requests_.size());
}

// If batches are in flight on the IPUs and no other batch follows in time, a batch of zeros pushes them on. Its result
// is dropped.
void Application::WatchTime() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closed_) {
    if (!WaitsForMore()) {
      changed_.wait(lock);
      continue;
    }
    const int64_t seen = events_;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(timeout_us_);
    while (!closed_ && events_ == seen && std::chrono::steady_clock::now() < until) changed_.wait_until(lock, until);
    if (closed_ || events_ != seen) continue;
    Tensors zeros;
    for (const ApplicationTensor& tensor : program_.infeeds) {
      zeros.emplace_back(static_cast<DataType>(tensor.type), ShapeOf(tensor));
      Tensor& made = zeros.back();
      if (DataTypeCanUseMemcpy(made.dtype()) && made.TotalBytes() > 0) std::memset(made.data(), 0, made.TotalBytes());
    }
    lock.unlock();
    Call(std::move(zeros), nullptr).IgnoreError();
    lock.lock();
  }
}

}  // namespace tf_ipu_shim
