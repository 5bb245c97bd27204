// addCodelets() of poplin.
#include <poplin/codelets.hpp>

namespace poplin {

void addCodelets(poplar::Graph &) {}

}  // namespace poplin
