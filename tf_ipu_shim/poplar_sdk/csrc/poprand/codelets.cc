// addCodelets() of poprand.
#include <poprand/codelets.hpp>

namespace poprand {

void addCodelets(poplar::Graph &) {}

}  // namespace poprand
