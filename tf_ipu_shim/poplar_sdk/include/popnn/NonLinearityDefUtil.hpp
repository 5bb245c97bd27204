// Reads and prints the names of non-linear functions.
#ifndef popnn_NonLinearityDefUtil_hpp
#define popnn_NonLinearityDefUtil_hpp

#include <iosfwd>
#include <popnn/NonLinearityDef.hpp>

namespace popnn {

const char *asString(const NonLinearityType &type);
std::ostream &operator<<(std::ostream &os, const NonLinearityType &type);
std::istream &operator>>(std::istream &in, NonLinearityType &type);

}  // namespace popnn

#endif
