// Steps of library functions in a compute set of the caller.
#ifndef poplar_detail_compute_sets_hpp
#define poplar_detail_compute_sets_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace poplar::detail {

// Runs `program` whenever the compute set runs, after its vertices.
void addToComputeSet(Graph& graph, const ComputeSet& computeSet, const program::Program& program);

}  // namespace poplar::detail

#endif
