// XLA's options for launches of IPU programs. Those of the process stay as the user has them.
#pragma once

namespace tf_ipu_shim {

// While one lives, what its thread has XLA compile is compiled as TensorFlow's kernels compute: maxima and minima of NaN
// are NaN. `fuses`: whether XLA may make one loop of several ops.
class LaunchOptions {
 public:
  explicit LaunchOptions(bool fuses);
  ~LaunchOptions() { Leave(); }
  LaunchOptions(const LaunchOptions&) = delete;
  LaunchOptions& operator=(const LaunchOptions&) = delete;

  // Ends it early.
  void Leave();

 private:
  const bool fuses_;
  bool inside_ = true;
};

}  // namespace tf_ipu_shim
