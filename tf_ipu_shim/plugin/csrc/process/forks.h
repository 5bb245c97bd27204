// A fork has none of its parent's threads: whatever a device of the parent's hands to a pool of threads is never done.
#pragma once

#include <cstdint>

namespace tf_ipu_shim {

// How often this process and those that it comes from have been forked since the plugin was loaded. A device that was
// made at another number was made by a parent.
int64_t ForkCount();

}  // namespace tf_ipu_shim
