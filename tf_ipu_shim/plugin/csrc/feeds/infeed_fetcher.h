// Takes elements from a dataset ahead of a program, in a thread of its own: a program gets those that are there, and is
// not held up by one that is late.
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

  // `ahead`: how many elements may wait here.
  explicit InfeedFetcher(size_t ahead) : ahead_(ahead) {}
  ~InfeedFetcher();
  InfeedFetcher(const InfeedFetcher&) = delete;
  InfeedFetcher& operator=(const InfeedFetcher&) = delete;

  // Begins a run that needs so many elements, and no more: those behind them stay in the dataset. `end` is what is said
  // where it has fewer.
  void Begin(tensorflow::OpKernelContext* context,
             tensorflow::core::RefCountPtr<tensorflow::data::IteratorResource> iterator, tensorflow::Status end,
             int64_t elements);
  // At least one element, at most `count`, as many as there are; waits for the first. An error, such as the dataset's
  // end, comes after the elements before it.
  tensorflow::Status Take(tensorflow::CancellationManager* cancellation, size_t count, std::vector<Element>* taken);

 private:
  // What a call of the dataset wants, for longer than one kernel runs.
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
