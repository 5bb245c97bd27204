// Implements `addCodelets()` of popsparse, which adds nothing.
#include <popsparse/codelets.hpp>

namespace popsparse {

void addCodelets(poplar::Graph &) {}

}  // namespace popsparse
