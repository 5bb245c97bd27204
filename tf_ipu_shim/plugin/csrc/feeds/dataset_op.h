// The base of ops that wait for a dataset: each has a thread for that, so that no thread of TensorFlow's pools waits.
//
// TensorFlow's own base, `HybridAsyncOpKernel`, wakes its thread after it has let go of the lock. By then the op may be
// done, its step over and the kernel deleted (checked on 2.15.1 and 2.21.0).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/env.h"

namespace tf_ipu_shim {

class DatasetOp : public tensorflow::AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  ~DatasetOp() override;
  void Compute(tensorflow::OpKernelContext* context) final { context->SetStatus(DoCompute(context)); }
  void ComputeAsync(tensorflow::OpKernelContext* context, DoneCallback done) final;

 protected:
  // May wait.
  virtual tensorflow::Status DoCompute(tensorflow::OpKernelContext* context) = 0;

 private:
  void Work();

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
  bool ends_ = false;
  std::unique_ptr<tensorflow::Thread> thread_;
};

}  // namespace tf_ipu_shim
