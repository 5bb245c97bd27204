// Selects one element of each row of a matrix, by an index for each row.
#ifndef popops_SelectScalarFromRows_hpp
#define popops_SelectScalarFromRows_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace popops {

// params[i, indices[i]] for each row i: NaN if the index lies outside, 0 if it is MASKED_LABEL_CODE.
poplar::Tensor selectScalarFromRows(poplar::Graph &graph, const poplar::Tensor &params, const poplar::Tensor &indices,
                                    poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
