// Implements the prefetch thread of an infeed.
#include "feeds/infeed_fetcher.h"

#include <chrono>
#include <utility>

#include "process/interrupts.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"

namespace tf_ipu_shim {

using namespace tensorflow;  // NOLINT: this file drives TensorFlow's datasets

// Waits for an element that is about to arrive, because each program run has a fixed cost.
constexpr int64_t kGraceMicros = 300;
// How often a call that waits looks whether it was interrupted.
constexpr int64_t kLookMillis = 50;

InfeedFetcher::~InfeedFetcher() {
  std::shared_ptr<Source> source;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    ends_ = true;
    source = source_;
    changed_.notify_all();
  }
  if (source != nullptr) source->cancellation.StartCancel();  // without the lock: this calls the dataset
  thread_.reset();                                            // joins
}

void InfeedFetcher::Begin(OpKernelContext* context, core::RefCountPtr<data::IteratorResource> iterator, Status end,
                          int64_t elements) {
  auto source = std::make_shared<Source>();
  source->iterator = std::move(iterator);
  source->end = std::move(end);
  source->runner = *context->runner();
  source->params = *context->params();
  source->params.runner = &source->runner;
  source->params.cancellation_manager = &source->cancellation;
  source->params.inputs = {};
  source->params.input_alloc_attrs = {};
  source->context = std::make_unique<OpKernelContext>(&source->params, 0);
  std::unique_lock<std::mutex> lock(mutex_);
  ++run_;
  source_ = std::move(source);
  wanted_ = elements;
  ready_.clear();  // what a run that failed has left
  failure_ = OkStatus();
  if (thread_ == nullptr) thread_.reset(Env::Default()->StartThread({}, "ipu_infeed", [this] { Work(); }));
  changed_.notify_all();
}

Status InfeedFetcher::Take(CancellationManager* cancellation, size_t count, std::vector<Element>* taken) {
  const CancellationToken token = cancellation->get_cancellation_token();
  bool cancelled = !cancellation->RegisterCallback(token, [this, &cancelled] {
    std::unique_lock<std::mutex> lock(mutex_);
    cancelled = true;
    changed_.notify_all();
  });
  {
    std::unique_lock<std::mutex> lock(mutex_);
    // Told once the first is there, and once all are: a wake-up for each would cost more than the elements.
    needed_ = 1;
    while (!cancelled && ready_.empty() && failure_.ok()) {
      changed_.wait_for(lock, std::chrono::milliseconds(kLookMillis));
      cancelled |= Interrupted();
    }
    needed_ = count;
    size_t seen = 0;
    while (!cancelled && ready_.size() < count && failure_.ok() && wanted_ > 0 && ready_.size() > seen) {
      seen = ready_.size();
      changed_.wait_for(lock, std::chrono::microseconds(kGraceMicros));
    }
    needed_ = 0;
    for (; taken->size() < count && !ready_.empty(); ready_.pop_front()) taken->push_back(std::move(ready_.front()));
    changed_.notify_all();
    if (!cancelled && taken->empty()) {
      const Status failure = failure_;
      lock.unlock();
      cancellation->DeregisterCallback(token);
      return failure;
    }
  }
  cancellation->DeregisterCallback(token);
  return cancelled ? errors::Cancelled("The program was cancelled while it waited for its infeed") : OkStatus();
}

void InfeedFetcher::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ends_) {
    if (wanted_ == 0 || !failure_.ok() || ready_.size() >= ahead_) {
      changed_.wait(lock);
      continue;
    }
    const std::shared_ptr<Source> source = source_;
    const int64_t run = run_;
    lock.unlock();
    Element element;
    bool end = false;
    Status status = source->iterator->GetNext(source->context.get(), &element, &end);
    if (status.ok() && end) status = source->end;
    lock.lock();
    if (run != run_) continue;
    if (status.ok()) {
      ready_.push_back(std::move(element));
      --wanted_;
    } else {
      failure_ = status;
    }
    if (wanted_ == 0 || !failure_.ok()) source_.reset();  // an iterator goes when its infeed begins anew
    if (!status.ok() || (needed_ > 0 && ready_.size() >= needed_)) changed_.notify_all();
  }
}

}  // namespace tf_ipu_shim
