// Translates sparse matrices between the formats of the host and the data of sparse tensors.
#include <popsparse/SparsePartitioner.hpp>

#include "popsparse/dynamic_matrix.hpp"
#include "popsparse/static_matrix.hpp"

namespace popsparse {

using namespace poputil::library;

namespace dynamic {

class PartitionerImpl {
 public:
  explicit PartitionerImpl(detail::DynamicMatrix matrix) : matrix_(std::move(matrix)) {}
  const detail::Grid &grid() const { return matrix_.grid; }

  template <class T>
  SparsityDataImpl<T> encode(detail::Blocks<T> blocks) const {
    auto words = matrix_.encode(blocks.positions);
    blocks.values.resize(matrix_.values());
    return {std::move(words), std::move(blocks.values)};
  }

  template <class T>
  detail::Blocks<T> decode(const SparsityDataImpl<T> &data) const {
    if (data.metaInfo.size() != matrix_.metaInfoElements() || data.nzValues.size() != matrix_.values())
      fail("popsparse::dynamic::Partitioner", "the data has " + std::to_string(data.metaInfo.size()) +
           " elements of meta information and " + std::to_string(data.nzValues.size()) + " values; expected " +
           std::to_string(matrix_.metaInfoElements()) + " and " + std::to_string(matrix_.values()),
           "Pass data of a Partitioner with the same parameters");
    detail::Blocks<T> blocks{matrix_.decode(data.metaInfo.data()), data.nzValues};
    blocks.values.resize(blocks.positions.size() * grid().blockElements());
    return blocks;
  }

 private:
  detail::DynamicMatrix matrix_;
};

template <typename T>
Partitioner<T>::Partitioner(const FullyConnectedParams &params, const poplar::Type &dataType, const poplar::Target &,
                            const OptionFlags &options, PlanningCache *, std::string)
    : impl_(new PartitionerImpl(detail::matrixOf(params))) {
  checkOptions("popsparse::dynamic::Partitioner", options, sparse_options);
  detail::checkFloating("popsparse::dynamic::Partitioner", dataType);
}

template <typename T>
Partitioner<T>::Partitioner(const MatMulParams &params, const poplar::Type &dataType, const poplar::Target &,
                            const OptionFlags &options, PlanningCache *, std::string)
    : impl_(new PartitionerImpl(detail::matrixOf(params))) {
  checkOptions("popsparse::dynamic::Partitioner", options, sparse_options);
  detail::checkFloating("popsparse::dynamic::Partitioner", dataType);
}

}  // namespace dynamic

namespace static_ {

// Remembers the positions of the last matrix.
class PartitionerImpl {
 public:
  explicit PartitionerImpl(const MatMulParams &params) : params_(params) {}
  const detail::Grid &grid() const { return grid_; }

  template <class T, template <class> class Matrix>
  SparsityDataImpl<T> translate(const Matrix<T> &matrix) {
    grid_ = detail::gridOf(params_, matrix.getBlockDimensions());
    auto blocks = detail::blocksOf(grid_, matrix);
    positions_ = std::move(blocks.positions);
    return {std::move(blocks.values)};
  }

  template <class T>
  detail::Blocks<T> decode(const SparsityDataImpl<T> &data) const {
    if (data.nzValues.size() != positions_.size() * grid_.blockElements())
      fail("popsparse::static_::Partitioner", "the data has " + std::to_string(data.nzValues.size()) +
           " values; expected " + std::to_string(positions_.size() * grid_.blockElements()),
           "Call createSparsityDataImpl() first, and pass data of the same positions");
    return {positions_, data.nzValues};
  }

 private:
  MatMulParams params_;
  detail::Grid grid_;
  detail::Positions positions_;
};

template <typename T>
Partitioner<T>::Partitioner(const MatMulParams &params, const poplar::Type &dataType, const poplar::Target &,
                            const OptionFlags &options, PlanningCache *, std::string)
    : impl_(new PartitionerImpl(params)) {
  checkOptions("popsparse::static_::Partitioner", options, static_sparse_options);
  detail::checkFloating("popsparse::static_::Partitioner", dataType);
}

}  // namespace static_

// The translations of one format.
#define FORMAT(space, Format, TRANSLATE)                                                                        \
  template <typename T>                                                                                         \
  space::SparsityDataImpl<T> space::Partitioner<T>::createSparsityDataImpl(const Format##Matrix<T> &matrix) const { \
    return TRANSLATE;                                                                                           \
  }                                                                                                             \
  template <typename T>                                                                                         \
  Format##Matrix<T> space::Partitioner<T>::sparsityDataImplTo##Format##Matrix(                                  \
      const space::SparsityDataImpl<T> &data) const {                                                           \
    return detail::to##Format(impl_->grid(), impl_->decode(data));                                              \
  }

#define FORMATS(space, TRANSLATE)                        \
  FORMAT(space, COO, TRANSLATE)                          \
  FORMAT(space, CSR, TRANSLATE)                          \
  FORMAT(space, CSC, TRANSLATE)                          \
  template <typename T>                                  \
  space::Partitioner<T>::~Partitioner() = default;       \
  template class space::Partitioner<float>;              \
  template class space::Partitioner<double>;

FORMATS(dynamic, impl_->encode(detail::blocksOf(impl_->grid(), matrix)))
FORMATS(static_, impl_->translate(matrix))
#undef FORMATS
#undef FORMAT

}  // namespace popsparse
