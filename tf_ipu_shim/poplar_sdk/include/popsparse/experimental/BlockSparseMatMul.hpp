// Matmuls with a block-sparse operand or result. They accumulate in float and round once. BlockSparse.hpp describes the
// format. Tensors of several groups are concatenated in their first dimension. Tensors are mapped linearly. Options
// have no effect on values.
#ifndef popsparse_BlockSparseMatMul_hpp
#define popsparse_BlockSparseMatMul_hpp

#include <array>
#include <memory>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popsparse/experimental/BlockSparse.hpp>
#include <vector>

namespace popsparse {
namespace experimental {

class BSMatMulImpl;

// `dim` and `blockSize` are those of the rows of the left matrix, of its columns, and of the columns of the result.
// Blocks of half are multiples of 16 in each dimension, of float of 8.
class BSMatMulParams {
 public:
  // Dense times sparse. The right matrix may be stored transposed: its mask and its blocks then are, too.
  BSMatMulParams(const std::array<int, 3> &dim, const std::array<int, 3> &blockSize,
                 const std::vector<unsigned char> &rhsSparsity, bool rhsNeedTranspose, poplar::Type inDataType,
                 poplar::Type outDataType, poplar::Type partialDataType, unsigned numGroupsIn = 1);
  // Dense times dense, of which only the blocks of the mask are computed.
  BSMatMulParams(const std::array<int, 3> &dim, const std::array<int, 3> &blockSize,
                 const std::vector<unsigned char> &resSparsity, poplar::Type inDataType, poplar::Type outDataType,
                 poplar::Type partialDataType, SubBlockMask subBlockMask = SubBlockMask::None,
                 unsigned numGroupsIn = 1);
  BSMatMulParams(BSMatMulParams &&other);
  ~BSMatMulParams();

  std::unique_ptr<BSMatMulImpl> impl;
};

poplar::Tensor createBSMatMulInputLHS(poplar::Graph &graph, const BSMatMulParams &bsMatMul,
                                      const poplar::DebugContext &debugContext,
                                      const poplar::OptionFlags &options = {});
poplar::Tensor createBSMatMulInputRHS(poplar::Graph &graph, const BSMatMulParams &bsMatMul,
                                      const poplar::DebugContext &debugContext,
                                      const poplar::OptionFlags &options = {});
poplar::Tensor bsMatMul(poplar::Graph &graph, const BSMatMulParams &bsMatMulParams, poplar::program::Sequence &prog,
                        const poplar::Tensor &lhsMatrix, const poplar::Tensor &rhsMatrix,
                        const poplar::OptionFlags &options = {}, const poplar::DebugContext &debugContext = {});

}  // namespace experimental
}  // namespace popsparse

#endif
