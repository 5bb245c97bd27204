// How many programs run on each TensorFlow device now, for those who wait until none does.
#pragma once

#include "tensorflow/core/framework/cancellation.h"

namespace tf_ipu_shim {

void ProgramStarts(int device_ordinal);
void ProgramEnds(int device_ordinal);

// Returns false where the waiting op was cancelled or interrupted.
bool WaitUntilIdle(int device_ordinal, tensorflow::CancellationManager* cancellation);

}  // namespace tf_ipu_shim
