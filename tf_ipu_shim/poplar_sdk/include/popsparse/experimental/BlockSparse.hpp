// Softmax of the rows of block-sparse matrices. A matrix is a row-major tensor {number of non-zero blocks, elements of
// a block} and a mask. Row by row, the mask has a 1 for each non-zero block. Sums exclude elements of absent blocks and
// masked triangles. Elements of a masked triangle become 0.
#ifndef popsparse_BlockSparse_hpp
#define popsparse_BlockSparse_hpp

#include <array>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <vector>

namespace popsparse {
namespace experimental {

// The part of a matrix that is zero: above or below its diagonal.
enum class SubBlockMask { None, ZeroUpperTriangle, ZeroLowerTriangle };

// `dim` is {rows of all groups, columns}, or {rows of one, columns} with the mask of all. Each group has a diagonal.
poplar::Tensor bsSoftmax(
    poplar::Graph &graph, poplar::Tensor sparseTensor, const std::array<int, 2> &dim,
    const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity, SubBlockMask subBlockMaskType,
    unsigned numGroups, poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});
void bsSoftmaxInPlace(
    poplar::Graph &graph, poplar::Tensor sparseTensor, const std::array<int, 2> &dim,
    const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity, SubBlockMask subBlockMaskType,
    unsigned numGroups, poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});
// The gradient of the input, from the softmax and the gradient of it.
poplar::Tensor bsSoftmaxGrad(
    poplar::Graph &graph, poplar::Tensor sparseOut, poplar::Tensor sparseOutGrad, const std::array<int, 2> &dim,
    const std::array<int, 2> &blockSize, const std::vector<unsigned char> &sparsity, poplar::program::Sequence &prog,
    const poplar::DebugContext &debugContext = {});

}  // namespace experimental
}  // namespace popsparse

#endif
