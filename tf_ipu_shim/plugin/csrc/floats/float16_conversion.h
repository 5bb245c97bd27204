// Conversion of float16 arrays to float32 and back (round to nearest).
#pragma once

#include <cstdint>

namespace tf_ipu_shim {

// Bits of float16 on one side.
void Float16ToFloat32(const uint16_t* halves, int64_t count, float* floats);
void Float32ToFloat16(const float* floats, int64_t count, uint16_t* halves);

}  // namespace tf_ipu_shim
