// The sizes of a matmul of a sparse and a dense matrix, {m, k} times {k, n}, of one group.
#ifndef popsparse_MatMulParams_hpp
#define popsparse_MatMulParams_hpp

#include <iosfwd>
#include <popsparse/SparsityParams.hpp>
#include <tuple>

namespace popsparse {
namespace dynamic {

class MatMulParams {
  SparsityParams sparsity_;
  double ratio_ = 0;
  std::size_t groups_ = 1, m_ = 0, k_ = 0, n_ = 0;
  auto fields() const { return std::tie(sparsity_, ratio_, groups_, m_, k_, n_); }

 public:
  static MatMulParams createWithNzRatio(const SparsityParams &sparsityParams, double nzRatio, std::size_t groups,
                                        std::size_t m, std::size_t k, std::size_t n);
  static MatMulParams createWithNumNonZeroValues(const SparsityParams &sparsityParams, std::size_t numNonZeroElems,
                                                 std::size_t groups, std::size_t m, std::size_t k, std::size_t n);

  const SparsityParams &getSparsityParams() const { return sparsity_; }
  std::size_t getNumGroups() const { return groups_; }
  std::size_t getM() const { return m_; }
  std::size_t getK() const { return k_; }
  std::size_t getN() const { return n_; }
  double getNzRatio() const { return ratio_; }
  std::size_t getNumNonZeroValues() const;

  friend bool operator<(const MatMulParams &a, const MatMulParams &b) { return a.fields() < b.fields(); }
  friend bool operator==(const MatMulParams &a, const MatMulParams &b) { return a.fields() == b.fields(); }
  friend bool operator!=(const MatMulParams &a, const MatMulParams &b) { return !(a == b); }
};
std::ostream &operator<<(std::ostream &os, const MatMulParams &params);

}  // namespace dynamic

namespace static_ {

class MatMulParams {
  std::size_t groups_ = 1, m_ = 0, k_ = 0, n_ = 0;
  bool transposed_ = false;
  auto fields() const { return std::tie(groups_, m_, k_, n_, transposed_); }

 public:
  // {m, k} sparse times {k, n} dense.
  static MatMulParams createForSparseDense(std::size_t groups, std::size_t m, std::size_t k, std::size_t n);
  // {n, k} dense times {k, m} sparse.
  static MatMulParams createForDenseSparse(std::size_t groups, std::size_t n, std::size_t k, std::size_t m);

  std::size_t getNumGroups() const { return groups_; }
  std::size_t getM() const { return m_; }
  std::size_t getK() const { return k_; }
  std::size_t getN() const { return n_; }
  // Whether the sparse matrix is the second operand.
  bool isTransposed() const { return transposed_; }

  friend bool operator<(const MatMulParams &a, const MatMulParams &b) { return a.fields() < b.fields(); }
  friend bool operator==(const MatMulParams &a, const MatMulParams &b) { return a.fields() == b.fields(); }
  friend bool operator!=(const MatMulParams &a, const MatMulParams &b) { return !(a == b); }
};
std::ostream &operator<<(std::ostream &os, const MatMulParams &params);

}  // namespace static_
}  // namespace popsparse

#endif
