// Abseil's private SetInitialized: its log obeys the threshold for stderr once a program has initialized the log, which
// TensorFlow does not do. Checked on TensorFlow 2.21.0.
#pragma once

#include "absl/log/globals.h"
#include "absl/log/internal/globals.h"
