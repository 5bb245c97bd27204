// Turns C++ numbers into operands of element-wise functions: scalar constants of a tensor's type.
#ifndef popops_detail_constant_operand_hpp
#define popops_detail_constant_operand_hpp

#include <poplar/Graph.hpp>
#include <poplar/Tensor.hpp>
#include <poputil/exceptions.hpp>
#include <type_traits>

namespace popops {
namespace detail {

template <typename T>
using IfNumber = typename std::enable_if<poplar::TypeTraits::isSimpleType<T>()>::type;

// Returns whether a number of type T can be an operand with a tensor of `type`: both are floating point, or the types
// are equal.
template <typename T>
bool mayStandBeside(const poplar::Type &type) {
  return std::is_integral<T>::value ? type == poplar::equivalent_device_type<T>().value
                                    : type == poplar::FLOAT || type == poplar::HALF;
}

// The number as a scalar constant of the tensor's type, on tile 0.
template <typename T>
poplar::Tensor constantLike(poplar::Graph &graph, const poplar::Tensor &tensor, T value,
                            const poplar::DebugContext &debugContext) {
  if (!mayStandBeside<T>(tensor.elementType()))
    throw poputil::poplibs_error("Type mismatch between Binary op Tensor and constant: the tensor is " +
                                 tensor.elementType().toString().cloneAsString() + ", the constant " +
                                 poplar::equivalent_device_type<T>().value.toString().cloneAsString() +
                                 ". Write the constant in the tensor's type.");
  const auto constant = graph.addConstant(tensor.elementType(), {}, value, debugContext);
  graph.setTileMapping(constant, 0);
  return constant;
}

}  // namespace detail
}  // namespace popops

#endif
