// Matmuls with a block-sparse operand or result.
#include <popsparse/experimental/BlockSparseMatMul.hpp>
#include <poputil/detail/matrices.hpp>

#include "popsparse/block_sparse.hpp"

namespace popsparse {
namespace experimental {

using namespace poputil::library;
using detail::Grid;

// Rows of the left matrix, its columns, and columns of the result.
class BSMatMulImpl {
 public:
  std::size_t rows, depth, columns, groups;
  bool sparse_result, transposed = false;
  poplar::Type in_type, out_type;
  SubBlockMask mask = SubBlockMask::None;
  // The sparse matrix as it is stored, the groups one below the other.
  Grid grid;
  detail::Positions positions;

  Shape left() const { return {groups * rows, depth}; }
  Shape sparse() const { return {positions.size(), grid.blockElements()}; }
  Shape right() const { return sparse_result ? Shape{groups * depth, columns} : sparse(); }
  Shape result() const { return sparse_result ? sparse() : Shape{groups * rows, columns}; }
};

POPLAR_FIELDS(BSMatMulImpl, part.rows, part.depth, part.columns, part.groups, part.sparse_result, part.transposed,
              part.in_type, part.out_type, part.mask, part.grid, part.positions)

namespace {

const std::string function = "popsparse::experimental::BSMatMulParams";

std::unique_ptr<BSMatMulImpl> describe(const std::array<int, 3> &dim, const std::array<int, 3> &block,
                                       const poplar::Type &in, const poplar::Type &out, const poplar::Type &partial,
                                       unsigned groups) {
  for (const auto &type : {in, out, partial}) detail::checkFloating(function, type);
  const int step = in == poplar::HALF ? 16 : 8;
  for (std::size_t i = 0; i != 3; ++i)
    if (dim[i] <= 0 || block[i] <= 0 || dim[i] % block[i] != 0 || block[i] % step != 0 || groups == 0)
      fail(function, "dimension " + std::to_string(i) + " is " + std::to_string(dim[i]) + " in blocks of " +
           std::to_string(block[i]) + ", in " + std::to_string(groups) + " groups; expected a multiple of the block, "
           "and blocks of multiples of " + std::to_string(step) + " for " + poputil::detail::typeName(in),
           "Choose another size of the blocks");
  auto impl = std::make_unique<BSMatMulImpl>();
  impl->rows = static_cast<std::size_t>(dim[0]);
  impl->depth = static_cast<std::size_t>(dim[1]);
  impl->columns = static_cast<std::size_t>(dim[2]);
  impl->groups = groups;
  impl->in_type = in;
  impl->out_type = out;
  return impl;
}

Tensor createOperand(poplar::Graph &graph, const char *where, const BSMatMulParams &params, const Shape &shape,
                     const OptionFlags &options, const poplar::DebugContext &debugContext) {
  checkOptions(where, options, block_sparse_options);
  return poputil::detail::createLinear(graph, params.impl->in_type, shape, debugContext);
}

// result {groups * rows, columns} += left * sparse, block by block.
void multiplyBySparse(const BSMatMulImpl &product, const float *left, const float *values, float *result) {
  using poputil::detail::Matrix;
  using Strided = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  using StridedResult = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;
  const auto &block = product.grid.block;
  const auto rows_of_group = product.grid.blockRows() / product.groups;
  for (std::size_t b = 0; b != product.positions.size(); ++b) {
    const auto &position = product.positions[b];
    const auto group = position.row / rows_of_group;
    const auto row = position.row % rows_of_group * block[0], column = position.column * block[1];
    const auto inner = product.transposed ? column : row, outer = product.transposed ? row : column;
    const auto depth = product.transposed ? block[1] : block[0], width = product.transposed ? block[0] : block[1];
    const Strided a(left + group * product.rows * product.depth + inner, product.rows, depth,
                    Eigen::OuterStride<>(product.depth));
    const Eigen::Map<const Matrix> w(values + b * product.grid.blockElements(), block[0], block[1]);
    StridedResult c(result + group * product.rows * product.columns + outer, product.rows, width,
                    Eigen::OuterStride<>(product.columns));
    if (product.transposed) c.noalias() += a * w.transpose();
    else c.noalias() += a * w;
  }
}

// The blocks of left * right that the mask has.
void multiplyToSparse(const BSMatMulImpl &product, const float *left, const float *right, float *result) {
  using poputil::detail::Matrix;
  const auto &block = product.grid.block;
  for (std::size_t b = 0; b != product.positions.size(); ++b) {
    const auto first_row = product.positions[b].row * block[0], first_column = product.positions[b].column * block[1];
    const Eigen::Map<const Matrix> a(left + first_row * product.depth, block[0], product.depth);
    const Eigen::Map<const Matrix, 0, Eigen::OuterStride<>> w(
        right + first_row / product.rows * product.depth * product.columns + first_column, product.depth, block[1],
        Eigen::OuterStride<>(product.columns));
    Eigen::Map<Matrix> c(result + b * product.grid.blockElements(), block[0], block[1]);
    c.noalias() = a * w;
    for (std::size_t i = 0; i != block[0]; ++i)
      for (std::size_t j = 0; j != block[1]; ++j)
        if (detail::isMasked(product.mask, first_row % product.rows + i, first_column + j)) c(i, j) = 0;
  }
}

}  // namespace

BSMatMulParams::BSMatMulParams(const std::array<int, 3> &dim, const std::array<int, 3> &blockSize,
                               const std::vector<unsigned char> &rhsSparsity, bool rhsNeedTranspose,
                               poplar::Type inDataType, poplar::Type outDataType, poplar::Type partialDataType,
                               unsigned numGroupsIn)
    : impl(describe(dim, blockSize, inDataType, outDataType, partialDataType, numGroupsIn)) {
  const auto depth = static_cast<std::size_t>(blockSize[1]), width = static_cast<std::size_t>(blockSize[2]);
  impl->sparse_result = false;
  impl->transposed = rhsNeedTranspose;
  impl->grid = rhsNeedTranspose ? Grid(numGroupsIn * impl->columns, impl->depth, {width, depth})
                                : Grid(numGroupsIn * impl->depth, impl->columns, {depth, width});
  impl->positions = detail::positionsOf(function, impl->grid, rhsSparsity);
}

BSMatMulParams::BSMatMulParams(const std::array<int, 3> &dim, const std::array<int, 3> &blockSize,
                               const std::vector<unsigned char> &resSparsity, poplar::Type inDataType,
                               poplar::Type outDataType, poplar::Type partialDataType, SubBlockMask subBlockMask,
                               unsigned numGroupsIn)
    : impl(describe(dim, blockSize, inDataType, outDataType, partialDataType, numGroupsIn)) {
  impl->sparse_result = true;
  impl->mask = subBlockMask;
  impl->grid = Grid(numGroupsIn * impl->rows, impl->columns,
                    {static_cast<std::size_t>(blockSize[0]), static_cast<std::size_t>(blockSize[2])});
  impl->positions = detail::positionsOf(function, impl->grid, resSparsity);
}

BSMatMulParams::BSMatMulParams(BSMatMulParams &&) = default;
BSMatMulParams::~BSMatMulParams() = default;

Tensor createBSMatMulInputLHS(poplar::Graph &graph, const BSMatMulParams &bsMatMul,
                              const poplar::DebugContext &debugContext, const OptionFlags &options) {
  return createOperand(graph, "popsparse::experimental::createBSMatMulInputLHS", bsMatMul, bsMatMul.impl->left(),
                       options, debugContext);
}

Tensor createBSMatMulInputRHS(poplar::Graph &graph, const BSMatMulParams &bsMatMul,
                              const poplar::DebugContext &debugContext, const OptionFlags &options) {
  return createOperand(graph, "popsparse::experimental::createBSMatMulInputRHS", bsMatMul, bsMatMul.impl->right(),
                       options, debugContext);
}

Tensor bsMatMul(poplar::Graph &graph, const BSMatMulParams &bsMatMulParams, Sequence &prog, const Tensor &lhsMatrix,
                const Tensor &rhsMatrix, const OptionFlags &options, const poplar::DebugContext &debugContext) {
  const std::string where = "popsparse::experimental::bsMatMul";
  checkOptions(where.c_str(), options, block_sparse_options);
  const auto &product = *bsMatMulParams.impl;
  detail::checkTensor(where, "the left matrix", lhsMatrix, product.left(), product.in_type);
  detail::checkTensor(where, "the right matrix", rhsMatrix, product.right(), product.in_type);
  const poplar::DebugContext context{debugContext, "bsMatMul"};
  const auto out = poputil::detail::createLinear(graph, product.out_type, product.result(), context);
  poputil::detail::addKernelIfAny(graph, prog, context, {lhsMatrix, rhsMatrix}, {out},
                                  Kernel::of([](const KernelArguments &arguments, const auto &product) {
    const auto size = [](const Shape &shape) { return poputil::detail::product(shape); };
    const auto left = poputil::detail::readFloats(product.in_type, arguments.inputs[0], size(product.left()));
    const auto right = poputil::detail::readFloats(product.in_type, arguments.inputs[1], size(product.right()));
    std::vector<float> result(size(product.result()));
    const auto multiply = product.sparse_result ? multiplyToSparse : multiplyBySparse;
    multiply(product, left.data(), right.data(), result.data());
    poputil::detail::writeFloats(product.out_type, result.data(), arguments.outputs[0], result.size());
  }, product));
  return out;
}

}  // namespace experimental
}  // namespace popsparse
