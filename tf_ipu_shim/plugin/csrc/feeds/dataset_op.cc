// Implements the thread of an op that waits for a dataset.
#include "feeds/dataset_op.h"

#include <utility>

namespace tf_ipu_shim {

using namespace tensorflow;  // NOLINT: this file is a TensorFlow op

DatasetOp::~DatasetOp() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
    changed_.notify_one();
  }
  thread_.reset();  // joins
}

void DatasetOp::ComputeAsync(OpKernelContext* context, DoneCallback done) {
  std::lock_guard<std::mutex> lock(mutex_);
  calls_.push_back([this, context, done = std::move(done)] {
    Compute(context);
    done();
  });
  if (thread_ == nullptr) thread_.reset(Env::Default()->StartThread({}, "ipu_dataset", [this] { Work(); }));
  changed_.notify_one();  // with the lock: without it, the call may be over and this object gone
}

void DatasetOp::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ends_) {
    if (calls_.empty()) {
      changed_.wait(lock);
      continue;
    }
    std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call();
    call = nullptr;
    lock.lock();
  }
}

}  // namespace tf_ipu_shim
