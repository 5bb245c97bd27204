#pragma once

namespace tf_ipu_shim {

// Keeps certain lines of TensorFlow's log from being shown in this process; once.
void LeaveNoiseOutOfTheLog();

// While one lives, TensorFlow's log has no line for an op that its thread cannot convert to XLA: the script is told of
// the op and its line in our own words. On 2.15 only: TensorFlow 2.21's log cannot be filtered.
class WithoutConversionErrors {
 public:
  WithoutConversionErrors();
  ~WithoutConversionErrors();
  WithoutConversionErrors(const WithoutConversionErrors&) = delete;
  WithoutConversionErrors& operator=(const WithoutConversionErrors&) = delete;
};

}  // namespace tf_ipu_shim
