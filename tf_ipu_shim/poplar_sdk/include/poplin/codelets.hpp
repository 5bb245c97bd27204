// `addCodelets()` of poplin, which adds nothing.
#ifndef poplin_codelets_hpp
#define poplin_codelets_hpp

#include <poplar/Graph.hpp>

namespace poplin {

// Kernels of this library are functions of the library, so there is nothing to add to the graph.
void addCodelets(poplar::Graph &graph);

}  // namespace poplin

#endif
