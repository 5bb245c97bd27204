// Converts floats to and from the bits of float16 values, on the host.
#ifndef popfloat_experimental_CastToHalf_hpp
#define popfloat_experimental_CastToHalf_hpp

#include <cstdint>

namespace popfloat {
namespace experimental {

// The nearest half, ties to even. A value above 65504 is that, or with `enNanoo` NaN.
std::uint16_t singleToHalf(float value, bool enNanoo = false);

float halfToSingle(std::uint16_t ihalf);

}  // namespace experimental
}  // namespace popfloat

#endif
