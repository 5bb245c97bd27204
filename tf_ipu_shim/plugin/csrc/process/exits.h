// Ends the process without its exit handlers, which would destroy what other threads use.
#pragma once

namespace tf_ipu_shim {

// For a process at whose exit `in_use` returns true. Flushes its output.
void SkipExitHandlersIf(bool (*in_use)());

}  // namespace tf_ipu_shim
