// Trace events of plain ops. On a real system what a step of a session runs on a device, outside compiled programs, is
// compiled as one program and executed; here TensorFlow's kernels run it, op by op.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "device/arena.h"
#include "protocol/program_messages.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// What is done about a device's plain ops.
constexpr uint8_t kTracePlainOps = 1;    // they make events
constexpr uint8_t kProfilePlainOps = 2;  // they are profiled, see `programs/plain_programs.h`

// By device. All that plain ops cost where nothing is done about them is to read this.
extern std::atomic<uint8_t> plain_ops_watched[kMaxDevices];

inline uint8_t PlainOpsWatched(int ordinal) { return plain_ops_watched[ordinal].load(std::memory_order_relaxed); }
void WatchPlainOps(int ordinal, uint8_t what, bool watch);

// The events that each program of plain ops on a device makes; none where it makes none.
void SetPlainOpEvents(int ordinal, std::optional<ProgramEvents> events);

// After a plain op has run: the first one of a step that an engine would be needed for makes the step's events.
void TracePlainOp(const tensorflow::OpKernel& kernel, tensorflow::OpKernelContext* context, int ordinal);

}  // namespace tf_ipu_shim
