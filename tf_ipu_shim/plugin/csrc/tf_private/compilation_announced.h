// Declares the flag by which TensorFlow announces XLA's first compilation of a process once.
#pragma once

#include "absl/base/call_once.h"

#define TF_IPU_SHIM_COMPILATION_ANNOUNCED \
  "_ZZN10tensorflow24device_compiler_internal30LogOnceXlaCompiledFirstClusterEvE8log_once"

// A variable of an inline function of TensorFlow's device_compiler.h, exported by the wheel; null where a version has it
// no more. Checked on 2.15.1 and 2.21.0; `check.cc` compares the sizes.
extern absl::once_flag compilation_announced __asm__(TF_IPU_SHIM_COMPILATION_ANNOUNCED) __attribute__((weak));
