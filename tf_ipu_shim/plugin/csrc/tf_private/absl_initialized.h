// Includes Abseil's private SetInitialized, which makes its log obey the threshold for stderr. TensorFlow never calls
// it. Checked on TensorFlow 2.21.0.
#pragma once

#include "absl/log/globals.h"
#include "absl/log/internal/globals.h"
