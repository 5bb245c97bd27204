#pragma once

namespace tf_ipu_shim {

// Keeps certain lines of TensorFlow's log from being shown in this process; once.
void LeaveNoiseOutOfTheLog();

}  // namespace tf_ipu_shim
