// Turns floating-point exceptions of vertices into errors.
#include "poplar/engine/float_checks.hpp"

#include <poplar/detail/options.hpp>
#include <poplar/exceptions.hpp>

namespace poplar::detail {

FloatChecks::FloatChecks(const OptionFlags& options) {
  if (isSet(options, "debug.floatPointOpException")) watched_ |= FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;
  if (isSet(options, "debug.nanOverflowException")) watched_ |= FE_OVERFLOW;
}

void FloatChecks::fail(int raised, const std::string& what) {
  const std::string kind = raised & FE_INVALID     ? "an invalid operation"
                           : raised & FE_DIVBYZERO ? "a division by zero"
                                                   : "an overflow";
  throw application_runtime_error("Floating-point exception: " + what + " made " + kind +
                                  ". Correct its inputs, or leave out debug.floatPointOpException and "
                                  "debug.nanOverflowException.");
}

}  // namespace poplar::detail
