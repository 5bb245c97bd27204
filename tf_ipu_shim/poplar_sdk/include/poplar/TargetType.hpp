// The kinds of devices that a graph can be built for: IPU, IPU Model and CPU.
#ifndef poplar_TargetType_hpp
#define poplar_TargetType_hpp

#include <ostream>
#include <string>

namespace poplar {

enum class TargetType { IPU, IPU_MODEL, CPU };

std::string toString(TargetType type);
std::ostream& operator<<(std::ostream& out, TargetType type);

}  // namespace poplar

#endif
