// Cholesky factorisation of float matrices, computed in double and rounded once.
#ifndef poplin_Cholesky_hpp
#define poplin_Cholesky_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/PlanningCache.hpp>
#include <vector>

namespace poplin {

poplar::Tensor createCholeskyInput(poplar::Graph &graph, const poplar::Type &type,
                                   const std::vector<std::size_t> &shape, bool lower,
                                   const poplar::DebugContext &debugContext, const poplar::OptionFlags &options = {},
                                   PlanningCache *cache = nullptr);

// Returns the lower factor L of a = L L^T, or the upper factor U of a = U^T U. Matrices are in the last two dimensions.
// Elements outside of the triangle are zero.
poplar::Tensor cholesky(poplar::Graph &graph, const poplar::Tensor &a, bool lower, poplar::program::Sequence &prog,
                        const poplar::DebugContext &debugContext = {}, poplar::OptionFlags options = {},
                        PlanningCache *cache = nullptr);
void choleskyInPlace(poplar::Graph &graph, const poplar::Tensor &a, bool lower, poplar::program::Sequence &prog,
                     const poplar::DebugContext &debugContext = {}, poplar::OptionFlags options = {},
                     PlanningCache *cache = nullptr);

}  // namespace poplin

#endif
