// Adds the steps of a library function to a compute set of its caller.
#ifndef poplar_detail_compute_sets_hpp
#define poplar_detail_compute_sets_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace poplar::detail {

// Runs `program` whenever the compute set runs, after its vertices.
void addToComputeSet(Graph& graph, const ComputeSet& computeSet, const program::Program& program);

}  // namespace poplar::detail

#endif
