// `addCodelets()` of popnn, which adds nothing.
#ifndef popnn_codelets_hpp
#define popnn_codelets_hpp

#include <poplar/Graph.hpp>

namespace popnn {

// Kernels of this library are functions of the library, so there is nothing to add to the graph.
void addCodelets(poplar::Graph &graph);

}  // namespace popnn

#endif
