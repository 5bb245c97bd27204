// Detects devices that were made before a fork. A forked process has none of its parent's threads, so work given to a
// thread pool of the parent's device would never finish.
#pragma once

#include <cstdint>

namespace tf_ipu_shim {

// The number of forks since the plugin was loaded, in this process and its ancestors. A device created at another
// number belongs to a parent process.
int64_t ForkCount();

}  // namespace tf_ipu_shim
