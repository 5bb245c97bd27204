// Prefetches dataset elements in a separate thread: a late element does not delay a program that needs earlier ones.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/kernels/data/iterator_ops.h"

namespace tf_ipu_shim {

class InfeedFetcher {
 public:
  using Element = std::vector<tensorflow::Tensor>;

  // `ahead`: the number of elements to prefetch.
  explicit InfeedFetcher(size_t ahead) : ahead_(ahead) {}
  ~InfeedFetcher();
  InfeedFetcher(const InfeedFetcher&) = delete;
  InfeedFetcher& operator=(const InfeedFetcher&) = delete;

  // Starts a run of exactly this many elements; the others stay in the dataset. `end` is the error if there are fewer.
  void Begin(tensorflow::OpKernelContext* context,
             tensorflow::core::RefCountPtr<tensorflow::data::IteratorResource> iterator, tensorflow::Status end,
             int64_t elements);
  // Takes the available elements, at least one and at most `count`; waits for the first. An error, such as end of data,
  // comes after the elements before it.
  tensorflow::Status Take(tensorflow::CancellationManager* cancellation, size_t count, std::vector<Element>* taken);

 private:
  // The context of dataset calls, which outlives single kernels.
  struct Source {
    tensorflow::core::RefCountPtr<tensorflow::data::IteratorResource> iterator;
    tensorflow::Status end;
    std::function<void(std::function<void()>)> runner;
    tensorflow::CancellationManager cancellation;
    tensorflow::OpKernelContext::Params params;
    std::unique_ptr<tensorflow::OpKernelContext> context;
  };
  void Work();

  const size_t ahead_;
  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable changed_;
  std::shared_ptr<Source> source_;
  int64_t run_ = 0;
  int64_t wanted_ = 0;  // elements still to be fetched for this run
  size_t needed_ = 0;   // how many a call waits for
  std::deque<Element> ready_;
  tensorflow::Status failure_;
  bool ends_ = false;
  std::unique_ptr<tensorflow::Thread> thread_;
};

}  // namespace tf_ipu_shim
