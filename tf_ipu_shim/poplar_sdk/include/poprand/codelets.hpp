// `addCodelets()` of poprand, which adds nothing.
#ifndef poprand_codelets_hpp
#define poprand_codelets_hpp

#include <poplar/Graph.hpp>

namespace poprand {

// Kernels of this library are functions of the library, so there is nothing to add to the graph.
void addCodelets(poplar::Graph &graph);

}  // namespace poprand

#endif
