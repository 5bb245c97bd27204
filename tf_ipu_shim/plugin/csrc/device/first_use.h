// The abilities of a TensorFlow device under the current configuration (run, compile only, return zeros). Python
// answers at the first use after each configuration, and attaches to the IPUs if the connection is on demand.
#pragma once

#include <atomic>
#include <cstdint>

#include "device/arena.h"
#include "programs/lowering_call.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/status.h"

namespace tf_ipu_shim {

enum class Use : int64_t {
  kRun = 0,          // attached
  kZeros = 1,        // connection type PRE_COMPILE: programs are compiled, and results are zero
  kCompileOnly = 2,  // connection type NEVER: programs are compiled, and running one is an error
  kUnattached = 3,   // connection type ON_DEMAND: attaches when it is to run what needs IPUs
};

// For each device its `Use` in the lowest two bits, below the epoch in which it was asked for.
extern std::atomic<int64_t> known_uses[kMaxDevices];

// Whether the device is attached and runs ops without restriction. The only cost of an op once that is so.
inline bool IsAttached(int ordinal) {
  return known_uses[ordinal].load(std::memory_order_acquire) == CurrentEpoch(ordinal) * 4;
}

// Asks Python once per device and epoch, and again to `attach` an unattached device. Errors are not cached: the next op
// tries again.
tensorflow::Status FindDeviceUse(int ordinal, bool attach, Use* use);

// Whether the device is known to return zeros. Never calls Python, so it attaches nothing.
bool ReturnsZeros(int ordinal);

// Whether an op outside programs runs on a compile-only device: ops that create, name or pass on data, for which
// Graphcore's driver runs no engine.
bool RunsWithoutEngine(const tensorflow::OpKernel& kernel);

// Graphcore's error for running anything else under connection type NEVER.
tensorflow::Status CompileOnlyError(const tensorflow::OpKernel& kernel);

// Replaces an op's results by zeros of their shapes.
tensorflow::Status ZeroOutputs(tensorflow::OpKernelContext* context);

}  // namespace tf_ipu_shim
