// Runs deletions that may block, such as of an infeed's iterator, each in a separate thread. The end of the process
// leaves those that are not over then: what they use stays, and no exit handler runs.
#pragma once

#include <chrono>
#include <functional>

namespace tf_ipu_shim {

// The caller waits for the deletion until `limit`.
void DeleteElsewhere(std::function<void()> deletion, std::chrono::milliseconds limit);

}  // namespace tf_ipu_shim
