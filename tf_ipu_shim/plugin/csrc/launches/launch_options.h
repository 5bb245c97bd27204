// Sets XLA's debug options for the launches of IPU programs, and leaves those of the process unchanged.
#pragma once

namespace tf_ipu_shim {

// Scope in which XLA compilations of this thread follow TensorFlow's kernels: maxima and minima of NaN are NaN.
// `fuses`: whether XLA may fuse ops.
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
