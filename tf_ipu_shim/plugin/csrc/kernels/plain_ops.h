// Records trace events for the uncompiled ops of a session's step. A session step has ops on a device outside compiled
// programs. A real system compiles and executes them as one program; here TensorFlow's kernels run them op by op.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "device/arena.h"
#include "protocol/program_messages.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// Bits that select the records of a device's uncompiled ops.
constexpr uint8_t kTracePlainOps = 1;    // they make events
constexpr uint8_t kProfilePlainOps = 2;  // they are profiled, see `programs/plain_programs.h`

// The recorded kinds of each device. Reading this is the only cost if nothing is recorded.
extern std::atomic<uint8_t> plain_ops_watched[kMaxDevices];

inline uint8_t PlainOpsWatched(int ordinal) { return plain_ops_watched[ordinal].load(std::memory_order_relaxed); }
void WatchPlainOps(int ordinal, uint8_t what, bool watch);

// Sets the events of each program of uncompiled ops on a device.
void SetPlainOpEvents(int ordinal, std::optional<ProgramEvents> events);

// Records a finished uncompiled op: the first one in a step that needs an engine creates the step's events.
void TracePlainOp(const tensorflow::OpKernel& kernel, tensorflow::OpKernelContext* context, int ordinal);

}  // namespace tf_ipu_shim
