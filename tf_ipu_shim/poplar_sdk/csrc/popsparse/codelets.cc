// addCodelets() of popsparse.
#include <popsparse/codelets.hpp>

namespace popsparse {

void addCodelets(poplar::Graph &) {}

}  // namespace popsparse
