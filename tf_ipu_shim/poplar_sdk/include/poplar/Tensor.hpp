// Tensors: views of the elements of variables, which can be sliced, reshaped and concatenated.
#ifndef poplar_Tensor_hpp
#define poplar_Tensor_hpp

#include <poplar/ArrayRef.hpp>
#include <poplar/Interval.hpp>
#include <poplar/Type.hpp>
#include <poplar/VariableRef.hpp>

#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace poplar {

namespace detail {
struct TensorImpl;
}

enum class UpsampleMethod { REPEAT };

// A tensor refers to elements of variables in some order; no operation below moves data.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<const detail::TensorImpl> impl) : impl_(std::move(impl)) {}

  Type elementType() const;
  std::vector<std::size_t> shape() const;
  unsigned rank() const;
  std::size_t dim(unsigned index) const;
  std::size_t numElements() const;
  bool valid() const { return impl_ != nullptr; }

  Tensor operator[](std::size_t index) const;
  Tensor index(ArrayRef<std::size_t> indices) const;
  Tensor slice(std::size_t begin, std::size_t end, unsigned dimension = 0) const;
  Tensor slice(const Interval& region, unsigned dimension = 0) const {
    return slice(region.begin(), region.end(), dimension);
  }
  Tensor slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const;
  std::vector<Tensor> slices(ArrayRef<Interval> regions, unsigned dimension = 0) const;
  std::vector<Tensor> slices(const std::vector<std::vector<Interval>>& regions, unsigned dimension = 0) const;
  // The slice at one index of the dimension for each of `ids`, each with a dimension of size 1.
  std::vector<Tensor> slices(ArrayRef<unsigned> ids, unsigned dimension = 0) const;

  Tensor flatten() const;
  Tensor flatten(unsigned begin, unsigned end) const;
  Tensor reshape(ArrayRef<std::size_t> shape) const;
  Tensor reshapePartial(unsigned begin, unsigned end, ArrayRef<std::size_t> shape) const;
  // Inserts a dimension of size 1 before each of these dimensions.
  Tensor expand(ArrayRef<std::size_t> before) const;
  Tensor squeeze(ArrayRef<std::size_t> dimensions) const;
  Tensor dimShuffle(ArrayRef<unsigned> permutation) const;
  Tensor dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const;
  Tensor dimRoll(unsigned dimension, unsigned to = 0) const;
  Tensor transpose() const;
  Tensor reverse(unsigned dimension) const;
  Tensor subSample(unsigned stride, unsigned dimension) const;
  // Repeats the tensor `count` times along a dimension.
  Tensor broadcast(unsigned count, unsigned dimension) const;
  // Repeats each element `scale` times along a dimension.
  Tensor upsample(unsigned scale, unsigned dimension, UpsampleMethod method = UpsampleMethod::REPEAT) const;
  // The same bits as another type of the same size.
  Tensor reinterpret(const Type& type) const;

  bool isContiguous() const;
  bool containsAliases() const;
  bool containsConstant() const;
  // Whether no element appears twice and none is constant.
  bool isParallelWriteable() const;
  // Intervals of the flattened tensor that lie one after another in a variable, in order.
  std::vector<Interval> getContiguousRegions() const;
  // The intervals of variables that the flattened tensor's regions are.
  std::vector<VariableInterval> getVarRegions() const;
  bool isMetadataTensor() const { return false; }
  bool hasMetadata() const { return false; }

  template <class T>
  bool getConstantValue(T* value) const {
    return getConstantData(value, sizeof(T), equivalent_device_type<T>().value, 1);
  }
  template <class T>
  bool getConstantData(T* values, std::size_t count) const {
    return getConstantData(values, sizeof(T) * count, equivalent_device_type<T>().value, count);
  }

  std::string shapeToString() const;
  // The names of the variables that the tensor has elements of.
  std::string getDebugStr() const;
  void dump() const { output(std::cout) << std::endl; }
  void dumpRegions(std::ostream& out = std::cout) const;
  std::ostream& output(std::ostream& out) const;
  bool operator==(const Tensor& other) const;
  bool operator!=(const Tensor& other) const { return !(*this == other); }

  const detail::TensorImpl& impl() const;

 private:
  bool getConstantData(void* to, std::size_t bytes, Type type, std::size_t count) const;
  std::shared_ptr<const detail::TensorImpl> impl_;
};

inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return tensor.output(out); }

Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension = 0);
inline Tensor concat(const Tensor& first, const Tensor& second, unsigned dimension = 0) {
  const Tensor both[] = {first, second};
  return concat(ArrayRef<Tensor>(both, 2), dimension);
}
// Adds `second`, which has one dimension less, as the last element of a dimension of `first`.
Tensor append(const Tensor& first, const Tensor& second, unsigned dimension);
inline Tensor append(const Tensor& first, const Tensor& second) { return append(first, second, 0); }

}  // namespace poplar

#endif
