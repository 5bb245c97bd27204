// Subtracts 1 from one element of each row of a matrix, by an index for each row.
#ifndef popops_UpdateScalarInRows_hpp
#define popops_UpdateScalarInRows_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popops {

// Subtracts 1 from params[i, indices[i]] for each row i. If the index lies outside the row becomes NaN; if it is
// MASKED_LABEL_CODE the row stays.
void updateScalarInRows(poplar::Graph &graph, const poplar::Tensor &params, const poplar::Tensor &indices,
                        poplar::program::Sequence &program, const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
