// Trace events of plain ops. On a real system what a step of a session runs on a device, outside compiled programs, is
// compiled as one program and executed; here TensorFlow's kernels run it, op by op.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "arena.h"
#include "program_messages.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tf_ipu_shim {

// By device, whether its plain ops make events. All that they cost where they make none is to read this.
extern std::atomic<bool> plain_ops_traced[kMaxDevices];

inline bool PlainOpsTraced(int ordinal) { return plain_ops_traced[ordinal].load(std::memory_order_relaxed); }

// The events that each program of plain ops on a device makes; none where it makes none.
void SetPlainOpEvents(int ordinal, std::optional<ProgramEvents> events);

// After a plain op has run: the first one of a step that an engine would be needed for makes the step's events.
void TracePlainOp(const tensorflow::OpKernel& kernel, tensorflow::OpKernelContext* context, int ordinal);

}  // namespace tf_ipu_shim
