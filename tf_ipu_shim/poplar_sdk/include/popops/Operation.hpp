// Reads and prints the names of reduction operations.
#ifndef popops_Operation_hpp
#define popops_Operation_hpp

#include <iosfwd>
#include <popops/OperationDef.hpp>

namespace popops {

std::istream &operator>>(std::istream &in, Operation &op);
std::ostream &operator<<(std::ostream &os, const Operation &op);

}  // namespace popops

#endif
