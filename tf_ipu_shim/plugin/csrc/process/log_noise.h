// Suppresses lines in TensorFlow's log on which no user can act.
#pragma once

namespace tf_ipu_shim {

// Installs the filter of TensorFlow's log in this process; later calls do nothing.
void FilterLogNoise();

// Suppresses TensorFlow's log lines about ops that this thread cannot convert to XLA: the error message already names
// the op and the script's line.
class ScopedConversionErrorFilter {
 public:
  ScopedConversionErrorFilter();
  ~ScopedConversionErrorFilter();
  ScopedConversionErrorFilter(const ScopedConversionErrorFilter&) = delete;
  ScopedConversionErrorFilter& operator=(const ScopedConversionErrorFilter&) = delete;
};

}  // namespace tf_ipu_shim
