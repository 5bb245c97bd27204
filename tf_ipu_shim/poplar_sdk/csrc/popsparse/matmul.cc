// Matmuls of a sparse and a dense matrix.
#include <popsparse/MatMul.hpp>

#include "popsparse/dynamic_matrix.hpp"
#include "popsparse/static_matrix.hpp"

namespace popsparse {

using namespace poputil::library;

namespace {

// The data of a sparse operand.
struct DynamicOperand : poputil::TensorMetaDataBase {
  explicit DynamicOperand(detail::DynamicMatrix m) : matrix(std::move(m)) {}
  detail::DynamicMatrix matrix;
};

struct StaticOperand : poputil::TensorMetaDataBase {
  StaticOperand(detail::Grid g, detail::Positions p) : grid(g), positions(std::move(p)) {}
  detail::Grid grid;
  detail::Positions positions;
};

template <class Operand, class SparseTensor>
const Operand &operandOf(const char *function, const SparseTensor &tensor) {
  const auto *operand = dynamic_cast<const Operand *>(tensor.getOpMetaData().getData());
  if (operand == nullptr)
    fail(function, "the sparse operand does not know its sizes", "Create it with the function for this operand");
  return *operand;
}

// A dense operand {1, depth, width} as {depth, width}.
Tensor denseMatrix(const char *function, const Tensor &dense, bool transposed, std::size_t depth,
                   const poplar::Type &type) {
  if (dense.rank() != 3)
    fail(function, "the dense operand has the shape " + poputil::detail::describeShape(dense.shape()) +
         "; expected three dimensions", "Add a dimension of groups");
  const auto matrix = transposed ? dense.dimShuffle({0, 2, 1}) : dense;
  detail::checkTensor(function, "the dense operand", matrix, {1, depth, matrix.dim(2)}, type);
  return matrix[0];
}

Tensor createOperand(poplar::Graph &graph, const poplar::Type &type, const Shape &shape,
                     const poplar::DebugContext &debugContext) {
  detail::checkFloating("popsparse", type);
  return poputil::detail::createLinear(graph, type, shape, debugContext);
}

// The positions of a sparse operand: those of its third tensor, or known ones.
detail::Positions positionsOf(const detail::DynamicMatrix &matrix, const KernelArguments &arguments) {
  return matrix.decode(static_cast<const std::uint16_t *>(arguments.inputs[2]));
}
const detail::Positions &positionsOf(const detail::Positions &positions, const KernelArguments &) { return positions; }

// {1, height, width}: the sparse matrix of `grid`, or the transposed one, times {depth, width}.
template <class Source>
Tensor addProduct(poplar::Graph &graph, const detail::Grid &grid, bool transposed, const std::vector<Tensor> &inputs,
                  Sequence &prog, const poplar::DebugContext &debugContext, Source source) {
  const auto type = inputs[0].elementType();
  const auto width = inputs[1].dim(1), height = transposed ? grid.columns : grid.rows;
  const auto out = poputil::detail::createLinear(graph, type, {1, height, width}, debugContext);
  poputil::detail::addKernelIfAny(
      graph, prog, debugContext, inputs, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &grid, const auto &transposed, const auto &type,
                    const auto &width, const auto &source) {
        detail::multiply(grid, positionsOf(source, arguments), transposed, type, arguments.inputs[0],
                         arguments.inputs[1], arguments.outputs[0], width);
      }, grid, transposed, type, width, std::move(source)));
  return out;
}

}  // namespace

namespace dynamic {

SparseTensor createSparseDenseMatMulLHS(poplar::Graph &graph, const poplar::Type &inputType,
                                        const MatMulParams &params, const poplar::DebugContext &debugContext,
                                        const OptionFlags &options, PlanningCache *) {
  checkOptions("popsparse::dynamic::createSparseDenseMatMulLHS", options, sparse_options);
  const auto matrix = detail::matrixOf(params);
  return detail::createTensor(graph, inputType, matrix, {debugContext, "lhs"},
                              {std::make_unique<DynamicOperand>(matrix)});
}

Tensor createSparseDenseMatMulRHS(poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params,
                                  const poplar::DebugContext &debugContext, const OptionFlags &options,
                                  PlanningCache *) {
  checkOptions("popsparse::dynamic::createSparseDenseMatMulRHS", options, sparse_options);
  return createOperand(graph, inputType, {params.getNumGroups(), params.getK(), params.getN()}, {debugContext, "rhs"});
}

Tensor sparseDenseMatMul(poplar::Graph &graph, const SparseTensor &lhs, const Tensor &rhs, Sequence &prog,
                         bool transposeLHS, bool transposeRHS, const poplar::DebugContext &debugContext,
                         const OptionFlags &options, PlanningCache *) {
  const char *function = "popsparse::dynamic::sparseDenseMatMul";
  checkOptions(function, options, sparse_options);
  const auto matrix = operandOf<DynamicOperand>(function, lhs).matrix;
  const auto values = lhs.getNzValuesTensor();
  const auto dense = denseMatrix(function, rhs, transposeRHS, transposeLHS ? matrix.grid.rows : matrix.grid.columns,
                                 values.elementType());
  return addProduct(graph, matrix.grid, transposeLHS, {values, dense, lhs.getMetaInfoTensor()}, prog,
                    {debugContext, "sparseDenseMatMul"}, matrix);
}

}  // namespace dynamic

namespace static_ {

namespace {

template <class T>
SparseTensor createSparse(poplar::Graph &graph, const poplar::Type &type, const MatMulParams &params, bool transposed,
                          const CSRMatrix<T> &matrix, const char *function, const OptionFlags &options,
                          const poplar::DebugContext &debugContext) {
  checkOptions(function, options, static_sparse_options);
  if (params.isTransposed() != transposed)
    fail(function, std::string("the parameters are those of ") +
         (transposed ? "sparse * dense" : "dense * sparse"), "Create them for this product");
  const auto grid = detail::gridOf(params, matrix.getBlockDimensions());
  auto positions = detail::blocksOf(grid, matrix).positions;
  const auto values = createOperand(graph, type, {positions.size() * grid.blockElements()}, debugContext);
  return {values, {std::make_unique<StaticOperand>(grid, std::move(positions))}};
}

// The sparse operand times a dense one; both are transposed for dense * sparse.
Tensor addProductOf(poplar::Graph &graph, const char *function, const SparseTensor &sparse, bool transposed,
                    const Tensor &dense, bool dense_transposed, Sequence &prog, const OptionFlags &options,
                    const poplar::DebugContext &debugContext) {
  checkOptions(function, options, static_sparse_options);
  const auto &operand = operandOf<StaticOperand>(function, sparse);
  const auto values = sparse.getNzValuesTensor();
  const auto depth = transposed ? operand.grid.rows : operand.grid.columns;
  const auto matrix = denseMatrix(function, dense, dense_transposed, depth, values.elementType());
  return addProduct(graph, operand.grid, transposed, {values, matrix}, prog, debugContext, operand.positions);
}

}  // namespace

template <typename T>
SparseTensor createSparseDenseMatMulLHS(poplar::Graph &graph, const poplar::Type &inputType,
                                        const MatMulParams &params, const CSRMatrix<T> &csrLHS,
                                        const poplar::DebugContext &debugContext, const OptionFlags &options,
                                        PlanningCache *) {
  return createSparse(graph, inputType, params, false, csrLHS, "popsparse::static_::createSparseDenseMatMulLHS",
                      options, {debugContext, "lhs"});
}

template <typename T>
SparseTensor createDenseSparseMatMulRHS(poplar::Graph &graph, const poplar::Type &inputType,
                                        const MatMulParams &params, const CSRMatrix<T> &csrRHS,
                                        const poplar::DebugContext &debugContext, const OptionFlags &options,
                                        PlanningCache *) {
  return createSparse(graph, inputType, params, true, csrRHS, "popsparse::static_::createDenseSparseMatMulRHS",
                      options, {debugContext, "rhs"});
}

template <typename T>
Tensor createSparseDenseMatMulRHS(poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params,
                                  const CSRMatrix<T> &, const poplar::DebugContext &debugContext,
                                  const OptionFlags options, PlanningCache *) {
  checkOptions("popsparse::static_::createSparseDenseMatMulRHS", options, static_sparse_options);
  return createOperand(graph, inputType, {params.getNumGroups(), params.getK(), params.getN()}, {debugContext, "rhs"});
}

template <typename T>
Tensor createDenseSparseMatMulLHS(poplar::Graph &graph, const poplar::Type &inputType, const MatMulParams &params,
                                  const CSRMatrix<T> &, const poplar::DebugContext &debugContext,
                                  const OptionFlags options, PlanningCache *) {
  checkOptions("popsparse::static_::createDenseSparseMatMulLHS", options, static_sparse_options);
  return createOperand(graph, inputType, {params.getNumGroups(), params.getN(), params.getK()}, {debugContext, "lhs"});
}

Tensor sparseDenseMatMul(poplar::Graph &graph, const SparseTensor &lhs, const Tensor &rhs, Sequence &prog,
                         bool transposeLHS, bool transposeRHS, const poplar::DebugContext &debugContext,
                         const OptionFlags &options, PlanningCache *) {
  return addProductOf(graph, "popsparse::static_::sparseDenseMatMul", lhs, transposeLHS, rhs, transposeRHS, prog,
                      options, {debugContext, "sparseDenseMatMul"});
}

Tensor denseSparseMatMul(poplar::Graph &graph, const Tensor &lhs, const SparseTensor &rhs, Sequence &prog,
                         bool transposeLHS, bool transposeRHS, const poplar::DebugContext &debugContext,
                         const OptionFlags &options, PlanningCache *) {
  return addProductOf(graph, "popsparse::static_::denseSparseMatMul", rhs, !transposeRHS, lhs, !transposeLHS, prog,
                      options, {debugContext, "denseSparseMatMul"})
      .dimShuffle({0, 2, 1});
}

#define FOR_VALUES(T)                                                                                               \
  template SparseTensor createSparseDenseMatMulLHS(poplar::Graph &, const poplar::Type &, const MatMulParams &,     \
                                                   const CSRMatrix<T> &, const poplar::DebugContext &,              \
                                                   const OptionFlags &options, PlanningCache *);                    \
  template SparseTensor createDenseSparseMatMulRHS(poplar::Graph &, const poplar::Type &, const MatMulParams &,     \
                                                   const CSRMatrix<T> &, const poplar::DebugContext &,              \
                                                   const OptionFlags &options, PlanningCache *);                    \
  template Tensor createSparseDenseMatMulRHS(poplar::Graph &, const poplar::Type &, const MatMulParams &,           \
                                             const CSRMatrix<T> &, const poplar::DebugContext &, const OptionFlags, \
                                             PlanningCache *);                                                      \
  template Tensor createDenseSparseMatMulLHS(poplar::Graph &, const poplar::Type &, const MatMulParams &,           \
                                             const CSRMatrix<T> &, const poplar::DebugContext &, const OptionFlags, \
                                             PlanningCache *);
FOR_VALUES(float)
FOR_VALUES(double)
#undef FOR_VALUES

}  // namespace static_
}  // namespace popsparse
