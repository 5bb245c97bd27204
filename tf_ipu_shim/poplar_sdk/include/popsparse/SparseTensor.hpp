// A sparse matrix on the device, as a tensor of positions (meta information) and one of values. Their tensors have one
// dimension.
#ifndef popsparse_SparseTensor_hpp
#define popsparse_SparseTensor_hpp

#include <poplar/Tensor.hpp>
#include <poputil/TensorMetaData.hpp>
#include <utility>

namespace popsparse {
namespace dynamic {

// Positions are data: unsigned short elements, which Partitioner::createSparsityDataImpl() writes.
class SparseTensor {
 public:
  SparseTensor() = default;
  SparseTensor(const poplar::Tensor &metaInfo, const poplar::Tensor &nzValues,
               const poputil::TensorMetaData &opMetaData = {})
      : meta_info_(metaInfo), values_(nzValues), op_meta_data_(opMetaData) {}
  const poplar::Tensor &getMetaInfoTensor() const { return meta_info_; }
  const poplar::Tensor &getNzValuesTensor() const { return values_; }
  const poputil::TensorMetaData &getOpMetaData() const { return op_meta_data_; }

 private:
  poplar::Tensor meta_info_, values_;
  poputil::TensorMetaData op_meta_data_;
};

}  // namespace dynamic

namespace static_ {

// Positions are known when the graph is built.
class SparseTensor {
 public:
  SparseTensor() = default;
  SparseTensor(const poplar::Tensor &nzValues, const poputil::TensorMetaData &opMetaData = {})
      : values_(nzValues), op_meta_data_(opMetaData) {}
  const poplar::Tensor &getNzValuesTensor() const { return values_; }
  const poputil::TensorMetaData &getOpMetaData() const { return op_meta_data_; }

 private:
  poplar::Tensor values_;
  poputil::TensorMetaData op_meta_data_;
};

}  // namespace static_
}  // namespace popsparse

#endif
