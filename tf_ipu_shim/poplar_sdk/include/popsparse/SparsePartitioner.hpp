// Translates sparse matrices between the formats of the host and the data of sparse tensors.
#ifndef popsparse_SparsePartitioner_hpp
#define popsparse_SparsePartitioner_hpp

#include <memory>
#include <poplar/OptionFlags.hpp>
#include <poplar/Target.hpp>
#include <poplar/Type.hpp>
#include <popsparse/FullyConnected.hpp>
#include <popsparse/FullyConnectedParams.hpp>
#include <popsparse/MatMulParams.hpp>
#include <popsparse/SparseStorageFormats.hpp>
#include <string>
#include <vector>

namespace popsparse {
namespace dynamic {

class PartitionerImpl;

// The elements that are copied to the tensors of a SparseTensor.
template <typename T>
struct SparsityDataImpl {
  std::vector<std::size_t> metaInfo;
  std::vector<T> nzValues;
};

// T is float or double.
template <typename T>
class Partitioner {
 public:
  Partitioner(const FullyConnectedParams &params, const poplar::Type &dataType, const poplar::Target &target,
              const poplar::OptionFlags &options, PlanningCache *cache = nullptr, std::string name = "");
  Partitioner(const MatMulParams &params, const poplar::Type &dataType, const poplar::Target &target,
              const poplar::OptionFlags &options, PlanningCache *cache = nullptr, std::string name = "");
  ~Partitioner();
  const PartitionerImpl &getImpl() const { return *impl_; }

  // Throws poplibs_error for more blocks than the parameters allow. Positions are sorted by row, then by column.
  SparsityDataImpl<T> createSparsityDataImpl(const CSCMatrix<T> &matrix) const;
  SparsityDataImpl<T> createSparsityDataImpl(const CSRMatrix<T> &matrix) const;
  SparsityDataImpl<T> createSparsityDataImpl(const COOMatrix<T> &matrix) const;

  COOMatrix<T> sparsityDataImplToCOOMatrix(const SparsityDataImpl<T> &data) const;
  CSRMatrix<T> sparsityDataImplToCSRMatrix(const SparsityDataImpl<T> &data) const;
  CSCMatrix<T> sparsityDataImplToCSCMatrix(const SparsityDataImpl<T> &data) const;

 private:
  std::unique_ptr<PartitionerImpl> impl_;
};

}  // namespace dynamic

namespace static_ {

class PartitionerImpl;

template <typename T>
struct SparsityDataImpl {
  std::vector<T> nzValues;
  SparsityDataImpl(std::vector<T> values) : nzValues(std::move(values)) {}
};

// T is float or double. Data is translated back with the positions of the matrix that was translated last.
template <typename T>
class Partitioner {
 public:
  Partitioner(const MatMulParams &params, const poplar::Type &dataType, const poplar::Target &target,
              const poplar::OptionFlags &options, PlanningCache *cache = nullptr, std::string name = "");
  ~Partitioner();
  const PartitionerImpl &getImpl() const { return *impl_; }

  SparsityDataImpl<T> createSparsityDataImpl(const CSCMatrix<T> &matrix) const;
  SparsityDataImpl<T> createSparsityDataImpl(const CSRMatrix<T> &matrix) const;
  SparsityDataImpl<T> createSparsityDataImpl(const COOMatrix<T> &matrix) const;

  COOMatrix<T> sparsityDataImplToCOOMatrix(const SparsityDataImpl<T> &data) const;
  CSRMatrix<T> sparsityDataImplToCSRMatrix(const SparsityDataImpl<T> &data) const;
  CSCMatrix<T> sparsityDataImplToCSCMatrix(const SparsityDataImpl<T> &data) const;

 private:
  std::unique_ptr<PartitionerImpl> impl_;
};

}  // namespace static_
}  // namespace popsparse

#endif
