// `addCodelets()` of popops, which adds nothing.
#ifndef popops_codelets_hpp
#define popops_codelets_hpp

#include <poplar/Graph.hpp>

namespace popops {

// Kernels of this library are functions of the library, so there is nothing to add to the graph.
void addCodelets(poplar::Graph &graph);

}  // namespace popops

#endif
