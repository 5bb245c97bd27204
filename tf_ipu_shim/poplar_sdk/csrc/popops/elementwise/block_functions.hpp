// Declares functions that compute one operation on a block of elements, for compiled expressions. They compute half in
// float.
#ifndef tf_ipu_shim_popops_block_functions_hpp
#define tf_ipu_shim_popops_block_functions_hpp

#include <cstddef>
#include <poplar/Type.hpp>
#include <popops/ExprOp.hpp>

namespace popops::detail {

// result[i] = f(operands[0][i], ...) for the `count` elements of a block.
using BlockFunction = void (*)(const void *const *operands, void *result, std::size_t count);

// The function for operands of a type; null if the operation has none for it. Select's condition is of type BOOL.
BlockFunction blockFunction(expr::UnaryOpType op, const poplar::Type &type);
BlockFunction blockFunction(expr::BinaryOpType op, const poplar::Type &type);
BlockFunction blockFunction(expr::TernaryOpType op, const poplar::Type &type);

BlockFunction castFunction(const poplar::Type &from, const poplar::Type &to);

// Convert between half in memory and float in a block. The last one rounds a block in place to half.
void loadHalves(const void *halves, float *floats, std::size_t count);
void storeHalves(const float *floats, void *halves, std::size_t count);
void roundToHalves(float *floats, std::size_t count);

// Whether the result is of type BOOL whatever the operands are.
bool isPredicate(expr::UnaryOpType op);
bool isPredicate(expr::BinaryOpType op);

}  // namespace popops::detail

#endif
