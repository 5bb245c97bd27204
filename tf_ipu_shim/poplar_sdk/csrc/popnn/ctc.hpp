// Adds probabilities given as logarithms, and checks the arguments that all CTC functions share.
#ifndef tf_ipu_shim_popnn_ctc_hpp
#define tf_ipu_shim_popnn_ctc_hpp

#include <limits>
#include <string>

#include "poputil/library.hpp"

namespace popnn::ctc {

using namespace poputil::library;

constexpr double NONE = -std::numeric_limits<double>::infinity();

inline double logAdd(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return high == NONE ? NONE : high + std::log1p(std::exp(low - high));
}

// Throws poplibs_error unless lengths or labels have this shape and a type of 32-bit integers.
inline void checkLengths(const std::string &function, const char *what, const Tensor &lengths, const Shape &shape) {
  if (lengths.shape() != shape ||
      (lengths.elementType() != poplar::UNSIGNED_INT && lengths.elementType() != poplar::INT))
    fail(function, std::string(what) + " have the shape " + poputil::detail::describeShape(lengths.shape()) +
         " and the type " + poputil::detail::typeName(lengths.elementType()) + "; expected " +
         poputil::detail::describeShape(shape) + " and unsigned int", "Reshape or cast them");
}

}  // namespace popnn::ctc

#endif
