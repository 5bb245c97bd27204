// What a TensorFlow device may do under the configuration in force: asked of Python at the first use of each device
// after each configuration, which attaches to the IPUs where the connection is on demand.
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

// Whether ops run on the device as they are. All that an op costs once its device is attached.
inline bool RunsFreely(int ordinal) {
  return known_uses[ordinal].load(std::memory_order_acquire) == CurrentEpoch(ordinal) * 4;
}

// Asks Python, until it has answered, once for each device and epoch, and once more to `attach` an unattached device. An
// error is not kept: the next op tries again.
tensorflow::Status UseOf(int ordinal, bool attach, Use* use);

// Whether results on the device are known to be zeros; asks nobody, and so attaches to nothing.
bool GivesZeros(int ordinal);

// Whether an op that is no program runs on a device that only compiles: one that makes, names or hands on data.
// Graphcore's driver runs no engine for these.
bool NeedsNoEngine(const tensorflow::OpKernel& kernel);

// Graphcore's error for running anything else under connection type NEVER.
tensorflow::Status CompileOnlyError(const tensorflow::OpKernel& kernel);

// Replaces an op's results by zeros of their shapes.
tensorflow::Status ZeroOutputs(tensorflow::OpKernelContext* context);

}  // namespace tf_ipu_shim
