// `addCodelets()` of popsparse, which adds nothing.
#ifndef popsparse_codelets_hpp
#define popsparse_codelets_hpp

#include <poplar/Graph.hpp>

namespace popsparse {

// Kernels of this library are functions of the library, so there is nothing to add to the graph.
void addCodelets(poplar::Graph &graph);

}  // namespace popsparse

#endif
