// float16 to float32, and to the nearest float16 back, by the processor's own instructions where it has them.
#pragma once

#include <cstdint>

namespace tf_ipu_shim {

// Bits of float16 on one side.
void HalvesToFloats(const uint16_t* halves, int64_t count, float* floats);
void FloatsToHalves(const float* floats, int64_t count, uint16_t* halves);

}  // namespace tf_ipu_shim
