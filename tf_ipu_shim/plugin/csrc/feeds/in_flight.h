// Counts the programs in flight on each TensorFlow device, and waits until there are none.
#pragma once

#include "tensorflow/core/framework/cancellation.h"

namespace tf_ipu_shim {

void ProgramStarts(int device_ordinal);
void ProgramEnds(int device_ordinal);

// Waits until no program runs on the device. Returns false if the waiting op was cancelled or interrupted.
bool WaitUntilIdle(int device_ordinal, tensorflow::CancellationManager* cancellation);

}  // namespace tf_ipu_shim
