// Softmax of the rows of block-sparse matrices.
#include <limits>
#include <utility>

#include "popsparse/block_sparse.hpp"

namespace popsparse {
namespace experimental {

using namespace poputil::library;
using detail::Grid;
using detail::Positions;

namespace {

struct Matrix {
  Grid grid;
  Positions positions;
  SubBlockMask mask;
  std::size_t rows_of_group;

  std::size_t elements() const { return positions.size() * grid.blockElements(); }

  // Calls `visit` with the row and the number of each element that is not masked.
  template <class Visit>
  void forEachElement(Visit visit) const {
    std::size_t element = 0;
    for (const auto &position : positions)
      for (std::size_t i = 0; i != grid.block[0]; ++i)
        for (std::size_t j = 0; j != grid.block[1]; ++j, ++element) {
          const auto row = position.row * grid.block[0] + i, column = position.column * grid.block[1] + j;
          if (!detail::isMasked(mask, row % rows_of_group, column)) visit(row, element);
        }
  }
};

POPLAR_FIELDS(Matrix, part.grid, part.positions, part.mask, part.rows_of_group)

Matrix describe(const std::string &function, const Tensor &tensor, const std::array<int, 2> &dim,
                const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity, SubBlockMask mask,
                unsigned numGroups) {
  const auto size = [](int value) { return static_cast<std::size_t>(std::max(value, 0)); };
  Grid grid(size(dim[0]), size(dim[1]), {size(blockSize[0]), size(blockSize[1])});
  // The mask tells whether the rows are those of all groups or of one.
  if (sparsity.size() == numGroups * grid.blockRows() * grid.blockColumns()) grid.rows *= numGroups;
  if (numGroups == 0 || grid.rows % numGroups != 0)
    fail(function, std::to_string(grid.rows) + " rows are divided into " + std::to_string(numGroups) + " groups",
         "Pass a number of groups that divides the rows");
  Matrix matrix{grid, detail::positionsOf(function, grid, sparsity), mask,
                std::max<std::size_t>(grid.rows / numGroups, 1)};
  detail::checkFloating(function, tensor.elementType());
  detail::checkTensor(function, "the sparse tensor", tensor, {matrix.positions.size(), grid.blockElements()},
                      tensor.elementType());
  return matrix;
}

void computeSoftmax(const Matrix &matrix, const std::vector<float> &x, std::vector<float> &y) {
  std::vector<float> largest(matrix.grid.rows, -std::numeric_limits<float>::infinity());
  std::vector<double> sums(matrix.grid.rows);
  matrix.forEachElement([&](std::size_t row, std::size_t i) { largest[row] = std::max(largest[row], x[i]); });
  matrix.forEachElement([&](std::size_t row, std::size_t i) { sums[row] += y[i] = std::exp(x[i] - largest[row]); });
  matrix.forEachElement([&](std::size_t row, std::size_t i) { y[i] = static_cast<float>(y[i] / sums[row]); });
}

void addSoftmax(poplar::Graph &graph, const Tensor &in, const Tensor &out, Matrix matrix, Sequence &prog,
                const poplar::DebugContext &debugContext) {
  const auto type = in.elementType();
  poputil::detail::addKernelIfAny(graph, prog, debugContext, {in}, {out},
                                  Kernel::of([](const KernelArguments &arguments, const auto &type,
                                                const auto &matrix) {
    const auto x = poputil::detail::readFloats(type, arguments.inputs[0], matrix.elements());
    std::vector<float> y(x.size());
    computeSoftmax(matrix, x, y);
    poputil::detail::writeFloats(type, y.data(), arguments.outputs[0], y.size());
  }, type, std::move(matrix)));
}

}  // namespace

Tensor bsSoftmax(poplar::Graph &graph, Tensor sparseTensor, const std::array<int, 2> &dim,
                 const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity,
                 SubBlockMask subBlockMaskType, unsigned numGroups, Sequence &prog,
                 const poplar::DebugContext &debugContext) {
  auto matrix = describe("popsparse::experimental::bsSoftmax", sparseTensor, dim, blockSize, sparsity,
                         subBlockMaskType, numGroups);
  const poplar::DebugContext context{debugContext, "bsSoftmax"};
  const auto out = poputil::detail::createLinear(graph, sparseTensor.elementType(), sparseTensor.shape(), context);
  addSoftmax(graph, sparseTensor, out, std::move(matrix), prog, context);
  return out;
}

void bsSoftmaxInPlace(poplar::Graph &graph, Tensor sparseTensor, const std::array<int, 2> &dim,
                      const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity,
                      SubBlockMask subBlockMaskType, unsigned numGroups, Sequence &prog,
                      const poplar::DebugContext &debugContext) {
  auto matrix = describe("popsparse::experimental::bsSoftmaxInPlace", sparseTensor, dim, blockSize, sparsity,
                         subBlockMaskType, numGroups);
  addSoftmax(graph, sparseTensor, sparseTensor, std::move(matrix), prog, {debugContext, "bsSoftmaxInPlace"});
}

Tensor bsSoftmaxGrad(poplar::Graph &graph, Tensor sparseOut, Tensor sparseOutGrad, const std::array<int, 2> &dim,
                     const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity, Sequence &prog,
                     const poplar::DebugContext &debugContext) {
  const std::string function = "popsparse::experimental::bsSoftmaxGrad";
  const auto type = sparseOut.elementType();
  auto matrix = describe(function, sparseOut, dim, blockSize, sparsity, SubBlockMask::None, 1);
  detail::checkTensor(function, "the gradient", sparseOutGrad, sparseOut.shape(), type);
  const poplar::DebugContext context{debugContext, "bsSoftmaxGrad"};
  const auto out = poputil::detail::createLinear(graph, type, sparseOut.shape(), context);
  poputil::detail::addKernelIfAny(graph, prog, context, {sparseOut, sparseOutGrad}, {out},
                                  Kernel::of([](const KernelArguments &arguments, const auto &type,
                                                const auto &matrix) {
    const auto y = poputil::detail::readFloats(type, arguments.inputs[0], matrix.elements());
    auto gradient = poputil::detail::readFloats(type, arguments.inputs[1], matrix.elements());
    std::vector<double> sums(matrix.grid.rows);
    matrix.forEachElement([&](std::size_t row, std::size_t i) { sums[row] += double{y[i]} * gradient[i]; });
    matrix.forEachElement([&](std::size_t row, std::size_t i) {
      gradient[i] = static_cast<float>(y[i] * (gradient[i] - sums[row]));
    });
    poputil::detail::writeFloats(type, gradient.data(), arguments.outputs[0], gradient.size());
  }, type, std::move(matrix)));
  return out;
}

}  // namespace experimental
}  // namespace popsparse
