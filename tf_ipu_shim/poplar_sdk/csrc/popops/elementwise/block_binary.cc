// Computes element-wise operations of two and three operands, such as Add and Select, on blocks of elements.
#pragma GCC optimize("O3,no-math-errno,no-trapping-math")  // the loops are vectorised
#include <algorithm>

#include "block_arithmetic.hpp"

namespace popops::detail {

namespace {

// An operation on elements of any type T.
#define OPERATION(Name, EXPRESSION) BLOCK_OPERATION(Name, (T a, T b), EXPRESSION)

OPERATION(Add, static_cast<T>(wrap(a) + wrap(b)))
OPERATION(Atan2, std::atan2(a, b))
OPERATION(BitwiseAnd, static_cast<T>(a & b))
OPERATION(BitwiseOr, static_cast<T>(a | b))
OPERATION(BitwiseXor, static_cast<T>(a ^ b))
OPERATION(BitwiseXnor, static_cast<T>(~(a ^ b)))
OPERATION(Divide, divide(a, b))
OPERATION(Equal, a == b)
OPERATION(GreaterEqual, a >= b)
OPERATION(Greater, a > b)
OPERATION(ToVariance, T(1) / (a * a) - b)
OPERATION(LessEqual, a <= b)
OPERATION(LogicalAnd, a && b)
OPERATION(LogicalOr, a || b)
OPERATION(Less, a < b)
OPERATION(Max, larger(a, b))
OPERATION(Min, smaller(a, b))
OPERATION(Multiply, static_cast<T>(wrap(a) * wrap(b)))
OPERATION(NotEqual, a != b)
OPERATION(Power, power(a, b))
OPERATION(Remainder, remainder(a, b))
OPERATION(ShiftLeft, shiftBitsLeft(a, b))
OPERATION(ShiftRight, shiftBitsRight(a, b))
OPERATION(ShiftSign, shiftSignRight(a, b))
OPERATION(Subtract, static_cast<T>(wrap(a) - wrap(b)))
OPERATION(ToInvStdDev, T(1) / std::sqrt(a + b))
#undef OPERATION

template <class T>
BlockFunction binaryFunction(expr::BinaryOpType op) {
  using Op = expr::BinaryOpType;
  switch (op) {
    case Op::ADD: return binaryLoopOf<Add, T, IS_NUMBER<T>>();
    case Op::ATAN2: return binaryLoopOf<Atan2, T, IS_FLOAT<T>>();
    case Op::BITWISE_AND: return binaryLoopOf<BitwiseAnd, T, IS_INTEGER<T>>();
    case Op::BITWISE_OR: return binaryLoopOf<BitwiseOr, T, IS_INTEGER<T>>();
    case Op::BITWISE_XOR: return binaryLoopOf<BitwiseXor, T, IS_INTEGER<T>>();
    case Op::BITWISE_XNOR: return binaryLoopOf<BitwiseXnor, T, IS_INTEGER<T>>();
    case Op::DIVIDE: return binaryLoopOf<Divide, T, IS_NUMBER<T>>();
    case Op::EQUAL: return binaryLoopOf<Equal, T, ALWAYS<T>>();
    case Op::GREATER_THAN_EQUAL: return binaryLoopOf<GreaterEqual, T, ALWAYS<T>>();
    case Op::GREATER_THAN: return binaryLoopOf<Greater, T, ALWAYS<T>>();
    case Op::INV_STD_DEV_TO_VARIANCE: return binaryLoopOf<ToVariance, T, IS_FLOAT<T>>();
    case Op::LESS_THAN_EQUAL: return binaryLoopOf<LessEqual, T, ALWAYS<T>>();
    case Op::LOGICAL_AND: return binaryLoopOf<LogicalAnd, T, std::is_same_v<T, bool>>();
    case Op::LOGICAL_OR: return binaryLoopOf<LogicalOr, T, std::is_same_v<T, bool>>();
    case Op::LESS_THAN: return binaryLoopOf<Less, T, ALWAYS<T>>();
    case Op::MAXIMUM: return binaryLoopOf<Max, T, IS_NUMBER<T>>();
    case Op::MINIMUM: return binaryLoopOf<Min, T, IS_NUMBER<T>>();
    case Op::MULTIPLY: return binaryLoopOf<Multiply, T, IS_NUMBER<T>>();
    case Op::NOT_EQUAL: return binaryLoopOf<NotEqual, T, ALWAYS<T>>();
    case Op::POWER: return binaryLoopOf<Power, T, IS_NUMBER<T>>();
    case Op::REMAINDER: return binaryLoopOf<Remainder, T, IS_NUMBER<T>>();
    case Op::SHIFT_LEFT: return binaryLoopOf<ShiftLeft, T, IS_INTEGER<T>>();
    case Op::SHIFT_RIGHT: return binaryLoopOf<ShiftRight, T, IS_INTEGER<T>>();
    case Op::SHIFT_RIGHT_SIGN_EXTEND: return binaryLoopOf<ShiftSign, T, IS_INTEGER<T>>();
    case Op::SUBTRACT: return binaryLoopOf<Subtract, T, IS_NUMBER<T>>();
    case Op::VARIANCE_TO_INV_STD_DEV: return binaryLoopOf<ToInvStdDev, T, IS_FLOAT<T>>();
  }
  return nullptr;
}

template <class T>
void selectLoop(const void *const *operands, void *result, std::size_t count) {
  const auto *a = static_cast<const T *>(operands[0]);
  const auto *b = static_cast<const T *>(operands[1]);
  const auto *condition = static_cast<const bool *>(operands[2]);
  auto *out = static_cast<T *>(result);
  for (std::size_t i = 0; i != count; ++i) out[i] = condition[i] ? a[i] : b[i];
}

template <class T>
void clampLoop(const void *const *operands, void *result, std::size_t count) {
  const auto *value = static_cast<const T *>(operands[0]);
  const auto *lowest = static_cast<const T *>(operands[1]);
  const auto *highest = static_cast<const T *>(operands[2]);
  auto *out = static_cast<T *>(result);
  for (std::size_t i = 0; i != count; ++i) {
    const T raised = value[i] < lowest[i] ? lowest[i] : value[i];
    out[i] = raised > highest[i] ? highest[i] : raised;
  }
}

template <class T>
BlockFunction ternaryFunction(expr::TernaryOpType op) {
  if (op == expr::TernaryOpType::SELECT) return &selectLoop<T>;
  if constexpr (IS_NUMBER<T>) return &clampLoop<T>;
  return nullptr;
}

}  // namespace

BlockFunction blockFunction(expr::BinaryOpType op, const poplar::Type &type) {
  return poputil::detail::visitType(type, [op](auto tag) {
    return binaryFunction<poputil::detail::Arithmetic<typename decltype(tag)::type>>(op);
  });
}

BlockFunction blockFunction(expr::TernaryOpType op, const poplar::Type &type) {
  return poputil::detail::visitType(type, [op](auto tag) {
    return ternaryFunction<poputil::detail::Arithmetic<typename decltype(tag)::type>>(op);
  });
}

bool isPredicate(expr::BinaryOpType op) {
  using Op = expr::BinaryOpType;
  switch (op) {
    case Op::EQUAL:
    case Op::NOT_EQUAL:
    case Op::LESS_THAN:
    case Op::LESS_THAN_EQUAL:
    case Op::GREATER_THAN:
    case Op::GREATER_THAN_EQUAL:
    case Op::LOGICAL_AND:
    case Op::LOGICAL_OR: return true;
    default: return false;
  }
}

}  // namespace popops::detail
