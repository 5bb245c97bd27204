// Implements `addCodelets()` of poprand, which adds nothing.
#include <poprand/codelets.hpp>

namespace poprand {

void addCodelets(poplar::Graph &) {}

}  // namespace poprand
