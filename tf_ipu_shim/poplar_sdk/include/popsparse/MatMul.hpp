// Matmuls of a sparse and a dense matrix. Dense tensors have three dimensions, the first of them 1. Matmuls accumulate
// in float and round once. Tensors are mapped linearly. Options and caches have no effect on values.
#ifndef popsparse_MatMul_hpp
#define popsparse_MatMul_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popsparse/MatMulParams.hpp>
#include <popsparse/PlanningCache.hpp>
#include <popsparse/SparseStorageFormats.hpp>
#include <popsparse/SparseTensor.hpp>

namespace popsparse {
namespace dynamic {

SparseTensor createSparseDenseMatMulLHS(
    poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
    PlanningCache *cache = nullptr);
poplar::Tensor createSparseDenseMatMulRHS(
    poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
    PlanningCache *cache = nullptr);

// `lhs` is of createSparseDenseMatMulLHS().
poplar::Tensor sparseDenseMatMul(
    poplar::Graph &graph, const SparseTensor &lhs, const poplar::Tensor &rhs, poplar::program::Sequence &prog,
    bool transposeLHS = false, bool transposeRHS = false, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);

}  // namespace dynamic

namespace static_ {

// The sparse operand. T is float or double; the matrix tells positions, its values are not copied.
template <typename T>
SparseTensor createSparseDenseMatMulLHS(
    poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params, const CSRMatrix<T> &csrLHS,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
    PlanningCache *cache = nullptr);
template <typename T>
SparseTensor createDenseSparseMatMulRHS(
    poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params, const CSRMatrix<T> &csrRHS,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
    PlanningCache *cache = nullptr);

// The dense operand.
template <typename T>
poplar::Tensor createSparseDenseMatMulRHS(
    poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params, const CSRMatrix<T> &csrLHS,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags options = {},
    PlanningCache *cache = nullptr);
template <typename T>
poplar::Tensor createDenseSparseMatMulLHS(
    poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params, const CSRMatrix<T> &csrRHS,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags options = {},
    PlanningCache *cache = nullptr);

poplar::Tensor sparseDenseMatMul(
    poplar::Graph &graph, const SparseTensor &lhs, const poplar::Tensor &rhs, poplar::program::Sequence &prog,
    bool transposeLHS = false, bool transposeRHS = false, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
poplar::Tensor denseSparseMatMul(
    poplar::Graph &graph, const poplar::Tensor &lhs, const SparseTensor &rhs, poplar::program::Sequence &prog,
    bool transposeLHS = false, bool transposeRHS = false, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);

}  // namespace static_
}  // namespace popsparse

#endif
