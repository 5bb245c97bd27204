// Implements `addCodelets()` of popops, which adds nothing.
#include <popops/codelets.hpp>

namespace popops {

void addCodelets(poplar::Graph &) {}

}  // namespace popops
