// Converts floats to and from the bits of float16 values, on the host.
#include <popfloat/experimental/CastToHalf.hpp>
#include <poputil/detail/elements.hpp>

namespace popfloat {
namespace experimental {

std::uint16_t singleToHalf(float value, bool enNanoo) {
  constexpr std::uint16_t SIGN = 0x8000, LARGEST = 0x7bff, INFINITE = 0x7c00, NOT_A_NUMBER = 0x7e00;
  const std::uint16_t bits = poputil::detail::floatToHalf(value).bits;
  if ((bits & ~SIGN) != INFINITE) return bits;
  return enNanoo ? NOT_A_NUMBER : static_cast<std::uint16_t>((bits & SIGN) | LARGEST);
}

float halfToSingle(std::uint16_t ihalf) { return poputil::detail::halfToFloat({ihalf}); }

}  // namespace experimental
}  // namespace popfloat
