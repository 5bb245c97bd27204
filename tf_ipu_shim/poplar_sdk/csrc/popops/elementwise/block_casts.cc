// Converts blocks of elements between types, and half to and from float.
#pragma GCC optimize("O3,no-math-errno,no-trapping-math")  // the loops are vectorised
#include <poputil/detail/elements.hpp>

#include "block_functions.hpp"

namespace popops::detail {

namespace {

using poputil::detail::Arithmetic;
using poputil::detail::Half;

template <class From, class To>
void castLoop(const void *const *operands, void *result, std::size_t count) {
  const auto *a = static_cast<const From *>(operands[0]);
  auto *out = static_cast<To *>(result);
  for (std::size_t i = 0; i != count; ++i) out[i] = poputil::detail::convert<To>(a[i]);
}

}  // namespace

BlockFunction castFunction(const poplar::Type &from, const poplar::Type &to) {
  using poputil::detail::visitType;
  return visitType(from, [&to](auto from_tag) {
    return visitType(to, [](auto to_tag) -> BlockFunction {
      return &castLoop<Arithmetic<typename decltype(from_tag)::type>, Arithmetic<typename decltype(to_tag)::type>>;
    });
  });
}

void loadHalves(const void *halves, float *floats, std::size_t count) {
  const auto *from = static_cast<const Half *>(halves);
  for (std::size_t i = 0; i != count; ++i) floats[i] = poputil::detail::halfToFloat(from[i]);
}

void storeHalves(const float *floats, void *halves, std::size_t count) {
  auto *to = static_cast<Half *>(halves);
  for (std::size_t i = 0; i != count; ++i) to[i] = poputil::detail::floatToHalf(floats[i]);
}

void roundToHalves(float *floats, std::size_t count) {
  for (std::size_t i = 0; i != count; ++i) floats[i] = poputil::detail::roundToHalf(floats[i]);
}

}  // namespace popops::detail
