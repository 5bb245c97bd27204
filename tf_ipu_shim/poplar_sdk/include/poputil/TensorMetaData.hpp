// Data that a library keeps with a tensor that it has created.
#ifndef poputil_TensorMetaData_hpp
#define poputil_TensorMetaData_hpp

#include <memory>
#include <utility>

namespace poputil {

class TensorMetaDataBase {
 public:
  virtual ~TensorMetaDataBase() = default;
};

// Copies share the data, which nothing changes.
class TensorMetaData {
 public:
  TensorMetaData() = default;
  TensorMetaData(std::unique_ptr<TensorMetaDataBase> data) : data_(std::move(data)) {}
  const TensorMetaDataBase *getData() const { return data_.get(); }

 private:
  std::shared_ptr<const TensorMetaDataBase> data_;
};

}  // namespace poputil

#endif
