// Multiplies row-major float matrices with Eigen, from TensorFlow's headers.
#ifndef poputil_detail_matrices_hpp
#define poputil_detail_matrices_hpp

#include <Eigen/Core>
#include <cstddef>

namespace poputil::detail {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// c = a * b (+ c), for row-major matrices {rows, depth} and {depth, columns}.
inline void multiply(const float *a, const float *b, float *c, std::size_t rows, std::size_t depth,
                     std::size_t columns, bool accumulate = false) {
  Eigen::Map<const Matrix> left(a, rows, depth), right(b, depth, columns);
  Eigen::Map<Matrix> result(c, rows, columns);
  if (!accumulate) result.setZero();
  if (depth != 0) result.noalias() += left * right;
}

// c += a * b^T, for row-major matrices {rows, depth} and {columns, depth}.
inline void addProductWithTransposed(const float *a, const float *b, float *c, std::size_t rows, std::size_t depth,
                                     std::size_t columns) {
  Eigen::Map<const Matrix> left(a, rows, depth), right(b, columns, depth);
  Eigen::Map<Matrix> result(c, rows, columns);
  if (depth != 0) result.noalias() += left * right.transpose();
}

// c += a^T * b, for row-major matrices {depth, rows} and {depth, columns}.
inline void addProductOfTransposed(const float *a, const float *b, float *c, std::size_t rows, std::size_t depth,
                                   std::size_t columns) {
  Eigen::Map<const Matrix> left(a, depth, rows), right(b, depth, columns);
  Eigen::Map<Matrix> result(c, rows, columns);
  if (depth != 0) result.noalias() += left.transpose() * right;
}

}  // namespace poputil::detail

#endif
