// Solves triangular systems of float matrices, computed in double and rounded once.
#ifndef poplin_TriangularSolve_hpp
#define poplin_TriangularSolve_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/PlanningCache.hpp>
#include <vector>

namespace poplin {

poplar::Tensor createTriangularSolveInputLHS(poplar::Graph &graph, const poplar::Type &inputType,
                                             const poplar::Type &outputType, const std::vector<std::size_t> &aShape,
                                             const std::vector<std::size_t> &bShape, bool leftSide,
                                             const poplar::DebugContext &debugContext,
                                             const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
poplar::Tensor createTriangularSolveInputRHS(poplar::Graph &graph, const poplar::Type &inputType,
                                             const poplar::Type &outputType, const std::vector<std::size_t> &aShape,
                                             const std::vector<std::size_t> &bShape, bool leftSide,
                                             const poplar::DebugContext &debugContext,
                                             const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);

// `a` with zeros outside of its triangle, and with `unitDiagonal` ones on its diagonal.
poplar::Tensor triangularMask(poplar::Graph &graph, const poplar::Tensor &a, bool lower, bool unitDiagonal,
                              poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

// X of A X = B, or of X A = B, for matrices in the last two dimensions.
poplar::Tensor triangularSolve(poplar::Graph &graph, const poplar::Tensor &a, const poplar::Tensor &b, bool leftSide,
                               bool lower, bool unitDiagonal, poplar::program::Sequence &prog,
                               const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
                               PlanningCache *cache = nullptr);

}  // namespace poplin

#endif
