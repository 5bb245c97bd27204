// addCodelets() of popnn.
#include <popnn/codelets.hpp>

namespace popnn {

void addCodelets(poplar::Graph &) {}

}  // namespace popnn
