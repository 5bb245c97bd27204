// Cholesky's factorisation of float, computed in double and rounded once.
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

// The lower factor L of a = L L^T, or the upper one of a = U^T U, for matrices in the last two dimensions; zeros
// outside of the triangle.
poplar::Tensor cholesky(poplar::Graph &graph, const poplar::Tensor &a, bool lower, poplar::program::Sequence &prog,
                        const poplar::DebugContext &debugContext = {}, poplar::OptionFlags options = {},
                        PlanningCache *cache = nullptr);
void choleskyInPlace(poplar::Graph &graph, const poplar::Tensor &a, bool lower, poplar::program::Sequence &prog,
                     const poplar::DebugContext &debugContext = {}, poplar::OptionFlags options = {},
                     PlanningCache *cache = nullptr);

}  // namespace poplin

#endif
