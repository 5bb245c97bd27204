// Element-wise functions. Each operation has three forms. One returns a new tensor. One has a name that ends in InPlace
// and writes to its first operand. One has a name that ends in WithOutput and writes to the given tensor. Operands
// broadcast by NumPy's rules. A new tensor has the tile mapping of the first operand with the result's shape, or a
// linear mapping without such an operand.
#ifndef popops_ElementWise_hpp
#define popops_ElementWise_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popops/Expr.hpp>
#include <popops/detail/constant_operand.hpp>
#include <string>
#include <vector>

namespace popops {

// The expression for each element of the tensors.
poplar::Tensor map(poplar::Graph &graph, const expr::Expr &expr, const std::vector<poplar::Tensor> &ts,
                   poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                   const poplar::OptionFlags &options = {});

// map(), written to the first tensor.
void mapInPlace(poplar::Graph &graph, const expr::Expr &expr, const std::vector<poplar::Tensor> &ts,
                poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                const poplar::OptionFlags &options = {});

// map(), written to `out`.
void mapWithOutput(poplar::Graph &graph, const expr::Expr &expr, const std::vector<poplar::Tensor> &ts,
                   const poplar::Tensor &out, poplar::program::Sequence &prog,
                   const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {});

// Several expressions on the same tensors. In place, expression i is written to tensor i, and all of them read the
// values from before.
std::vector<poplar::Tensor> map(poplar::Graph &graph, const std::vector<expr::Any> &exprs,
                                const std::vector<poplar::Tensor> &ts, poplar::program::Sequence &prog,
                                const poplar::DebugContext &debugContext = {},
                                const poplar::OptionFlags &options = {});
void mapInPlace(poplar::Graph &graph, const std::vector<expr::Any> &exprs, const std::vector<poplar::Tensor> &ts,
                poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                const poplar::OptionFlags &options = {});
void mapWithOutput(poplar::Graph &graph, const std::vector<expr::Any> &exprs, const std::vector<poplar::Tensor> &ts,
                   const std::vector<poplar::Tensor> &outs, poplar::program::Sequence &prog,
                   const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {});

inline poplar::Tensor map(poplar::Graph &graph, expr::UnaryOpType op, const poplar::Tensor &t,
                          poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                          const poplar::OptionFlags &options = {}) {
  return map(graph, expr::UnaryOp(op, expr::_1), {t}, prog, debugContext, options);
}
inline void mapInPlace(poplar::Graph &graph, expr::UnaryOpType op, const poplar::Tensor &t,
                       poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                       const poplar::OptionFlags &options = {}) {
  mapInPlace(graph, expr::UnaryOp(op, expr::_1), {t}, prog, debugContext, options);
}
inline void mapWithOutput(poplar::Graph &graph, expr::UnaryOpType op, const poplar::Tensor &in,
                          const poplar::Tensor &out, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  mapWithOutput(graph, expr::UnaryOp(op, expr::_1), {in}, out, prog, debugContext, options);
}

inline poplar::Tensor map(poplar::Graph &graph, expr::BinaryOpType op, const poplar::Tensor &a,
                          const poplar::Tensor &b, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  return map(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, prog, debugContext, options);
}
inline void mapInPlace(poplar::Graph &graph, expr::BinaryOpType op, const poplar::Tensor &a, const poplar::Tensor &b,
                       poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                       const poplar::OptionFlags &options = {}) {
  mapInPlace(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, prog, debugContext, options);
}
inline void mapWithOutput(poplar::Graph &graph, expr::BinaryOpType op, const poplar::Tensor &a,
                          const poplar::Tensor &b, const poplar::Tensor &out, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  mapWithOutput(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, out, prog, debugContext, options);
}

inline poplar::Tensor map(poplar::Graph &graph, expr::TernaryOpType op, const poplar::Tensor &a,
                          const poplar::Tensor &b, const poplar::Tensor &c, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  return map(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, prog, debugContext, options);
}
inline void mapInPlace(poplar::Graph &graph, expr::TernaryOpType op, const poplar::Tensor &a, const poplar::Tensor &b,
                       const poplar::Tensor &c, poplar::program::Sequence &prog,
                       const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  mapInPlace(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, prog, debugContext, options);
}
inline void mapWithOutput(poplar::Graph &graph, expr::TernaryOpType op, const poplar::Tensor &a,
                          const poplar::Tensor &b, const poplar::Tensor &c, const poplar::Tensor &out,
                          poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                          const poplar::OptionFlags &options = {}) {
  mapWithOutput(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, out, prog, debugContext, options);
}

#define TF_IPU_SHIM_UNARY_FUNCTION(name, OPERATION)                                                           \
  inline poplar::Tensor name(poplar::Graph &graph, const poplar::Tensor &A, poplar::program::Sequence &prog,  \
                             const poplar::DebugContext &debugContext = {},                                   \
                             const poplar::OptionFlags &options = {}) {                                       \
    return map(graph, expr::UnaryOpType::OPERATION, A, prog, debugContext, options);                          \
  }                                                                                                           \
  inline void name##WithOutput(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &out,      \
                               poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {}, \
                               const poplar::OptionFlags &options = {}) {                                     \
    mapWithOutput(graph, expr::UnaryOpType::OPERATION, A, out, prog, debugContext, options);                  \
  }

#define TF_IPU_SHIM_UNARY_FUNCTIONS(name, OPERATION)                                                          \
  TF_IPU_SHIM_UNARY_FUNCTION(name, OPERATION)                                                                 \
  inline void name##InPlace(poplar::Graph &graph, const poplar::Tensor &A, poplar::program::Sequence &prog,   \
                            const poplar::DebugContext &debugContext = {},                                    \
                            const poplar::OptionFlags &options = {}) {                                        \
    mapInPlace(graph, expr::UnaryOpType::OPERATION, A, prog, debugContext, options);                          \
  }

TF_IPU_SHIM_UNARY_FUNCTIONS(abs, ABSOLUTE)
TF_IPU_SHIM_UNARY_FUNCTIONS(asin, ASIN)
TF_IPU_SHIM_UNARY_FUNCTIONS(bitwiseNot, BITWISE_NOT)
TF_IPU_SHIM_UNARY_FUNCTIONS(cbrt, CBRT)
TF_IPU_SHIM_UNARY_FUNCTIONS(ceil, CEIL)
TF_IPU_SHIM_UNARY_FUNCTIONS(cos, COS)
TF_IPU_SHIM_UNARY_FUNCTIONS(countLeadingZeros, COUNT_LEADING_ZEROS)
TF_IPU_SHIM_UNARY_FUNCTIONS(erf, ERF)
TF_IPU_SHIM_UNARY_FUNCTIONS(exp, EXPONENT)
TF_IPU_SHIM_UNARY_FUNCTIONS(expm1, EXPONENT_MINUS_ONE)
TF_IPU_SHIM_UNARY_FUNCTIONS(exp2, EXPONENT2)
TF_IPU_SHIM_UNARY_FUNCTIONS(floor, FLOOR)
TF_IPU_SHIM_UNARY_FUNCTIONS(geluErf, GELU_ERF)
TF_IPU_SHIM_UNARY_FUNCTIONS(inv, INVERSE)
TF_IPU_SHIM_UNARY_FUNCTION(isFinite, IS_FINITE)
TF_IPU_SHIM_UNARY_FUNCTION(isInf, IS_INF)
TF_IPU_SHIM_UNARY_FUNCTION(isNaN, IS_NAN)
TF_IPU_SHIM_UNARY_FUNCTIONS(log, LOGARITHM)
TF_IPU_SHIM_UNARY_FUNCTIONS(log1p, LOGARITHM_ONE_PLUS)
TF_IPU_SHIM_UNARY_FUNCTIONS(logicalNot, LOGICAL_NOT)
TF_IPU_SHIM_UNARY_FUNCTIONS(neg, NEGATE)
TF_IPU_SHIM_UNARY_FUNCTIONS(nearbyint, NEARBY_INT)
TF_IPU_SHIM_UNARY_FUNCTIONS(popcount, POPCOUNT)
TF_IPU_SHIM_UNARY_FUNCTIONS(round, ROUND)
TF_IPU_SHIM_UNARY_FUNCTIONS(rsqrt, RSQRT)
TF_IPU_SHIM_UNARY_FUNCTIONS(sigmoid, SIGMOID)
TF_IPU_SHIM_UNARY_FUNCTIONS(signum, SIGNUM)
TF_IPU_SHIM_UNARY_FUNCTIONS(sin, SIN)
TF_IPU_SHIM_UNARY_FUNCTIONS(sqrt, SQRT)
TF_IPU_SHIM_UNARY_FUNCTIONS(square, SQUARE)
TF_IPU_SHIM_UNARY_FUNCTIONS(tan, TAN)
TF_IPU_SHIM_UNARY_FUNCTIONS(tanh, TANH)
TF_IPU_SHIM_UNARY_FUNCTIONS(trunc, TRUNC)
#undef TF_IPU_SHIM_UNARY_FUNCTIONS
#undef TF_IPU_SHIM_UNARY_FUNCTION

// An operand may also be a C++ number: it becomes a constant of the other operand's type.
#define TF_IPU_SHIM_BINARY_FUNCTIONS(name, OPERATION)                                                          \
  inline poplar::Tensor name(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,           \
                             poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},   \
                             const poplar::OptionFlags &options = {}) {                                        \
    return map(graph, expr::BinaryOpType::OPERATION, A, B, prog, debugContext, options);                       \
  }                                                                                                            \
  template <typename T, typename = detail::IfNumber<T>>                                                        \
  inline poplar::Tensor name(poplar::Graph &graph, const poplar::Tensor &A, const T B,                         \
                             poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},   \
                             const poplar::OptionFlags &options = {}) {                                        \
    return name(graph, A, detail::constantLike(graph, A, B, debugContext), prog, debugContext, options);       \
  }                                                                                                            \
  template <typename T, typename = detail::IfNumber<T>>                                                        \
  inline poplar::Tensor name(poplar::Graph &graph, const T A, const poplar::Tensor &B,                         \
                             poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},   \
                             const poplar::OptionFlags &options = {}) {                                        \
    return name(graph, detail::constantLike(graph, B, A, debugContext), B, prog, debugContext, options);       \
  }                                                                                                            \
  inline void name##InPlace(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,            \
                            poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},    \
                            const poplar::OptionFlags &options = {}) {                                         \
    mapInPlace(graph, expr::BinaryOpType::OPERATION, A, B, prog, debugContext, options);                       \
  }                                                                                                            \
  template <typename T, typename = detail::IfNumber<T>>                                                        \
  inline void name##InPlace(poplar::Graph &graph, const poplar::Tensor &A, const T B,                          \
                            poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},    \
                            const poplar::OptionFlags &options = {}) {                                         \
    name##InPlace(graph, A, detail::constantLike(graph, A, B, debugContext), prog, debugContext, options);     \
  }                                                                                                            \
  inline void name##WithOutput(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,         \
                               const poplar::Tensor &out, poplar::program::Sequence &prog,                     \
                               const poplar::DebugContext &debugContext = {},                                  \
                               const poplar::OptionFlags &options = {}) {                                      \
    mapWithOutput(graph, expr::BinaryOpType::OPERATION, A, B, out, prog, debugContext, options);               \
  }                                                                                                            \
  template <typename T, typename = detail::IfNumber<T>>                                                        \
  inline void name##WithOutput(poplar::Graph &graph, const poplar::Tensor &A, const T B,                       \
                               const poplar::Tensor &out, poplar::program::Sequence &prog,                     \
                               const poplar::DebugContext &debugContext = {},                                  \
                               const poplar::OptionFlags &options = {}) {                                      \
    name##WithOutput(graph, A, detail::constantLike(graph, A, B, debugContext), out, prog, debugContext,       \
                     options);                                                                                 \
  }                                                                                                            \
  template <typename T, typename = detail::IfNumber<T>>                                                        \
  inline void name##WithOutput(poplar::Graph &graph, const T A, const poplar::Tensor &B,                       \
                               const poplar::Tensor &out, poplar::program::Sequence &prog,                     \
                               const poplar::DebugContext &debugContext = {},                                  \
                               const poplar::OptionFlags &options = {}) {                                      \
    name##WithOutput(graph, detail::constantLike(graph, B, A, debugContext), B, out, prog, debugContext,       \
                     options);                                                                                 \
  }

TF_IPU_SHIM_BINARY_FUNCTIONS(add, ADD)
TF_IPU_SHIM_BINARY_FUNCTIONS(atan2, ATAN2)
TF_IPU_SHIM_BINARY_FUNCTIONS(bitwiseAnd, BITWISE_AND)
TF_IPU_SHIM_BINARY_FUNCTIONS(bitwiseOr, BITWISE_OR)
TF_IPU_SHIM_BINARY_FUNCTIONS(bitwiseXor, BITWISE_XOR)
TF_IPU_SHIM_BINARY_FUNCTIONS(bitwiseXnor, BITWISE_XNOR)
TF_IPU_SHIM_BINARY_FUNCTIONS(div, DIVIDE)
TF_IPU_SHIM_BINARY_FUNCTIONS(eq, EQUAL)
TF_IPU_SHIM_BINARY_FUNCTIONS(gteq, GREATER_THAN_EQUAL)
TF_IPU_SHIM_BINARY_FUNCTIONS(gt, GREATER_THAN)
TF_IPU_SHIM_BINARY_FUNCTIONS(invStdDevToVariance, INV_STD_DEV_TO_VARIANCE)
TF_IPU_SHIM_BINARY_FUNCTIONS(lteq, LESS_THAN_EQUAL)
TF_IPU_SHIM_BINARY_FUNCTIONS(logicalAnd, LOGICAL_AND)
TF_IPU_SHIM_BINARY_FUNCTIONS(logicalOr, LOGICAL_OR)
TF_IPU_SHIM_BINARY_FUNCTIONS(lt, LESS_THAN)
TF_IPU_SHIM_BINARY_FUNCTIONS(max, MAXIMUM)
TF_IPU_SHIM_BINARY_FUNCTIONS(min, MINIMUM)
TF_IPU_SHIM_BINARY_FUNCTIONS(mul, MULTIPLY)
TF_IPU_SHIM_BINARY_FUNCTIONS(neq, NOT_EQUAL)
TF_IPU_SHIM_BINARY_FUNCTIONS(pow, POWER)
TF_IPU_SHIM_BINARY_FUNCTIONS(rem, REMAINDER)
TF_IPU_SHIM_BINARY_FUNCTIONS(shiftLeft, SHIFT_LEFT)
TF_IPU_SHIM_BINARY_FUNCTIONS(shiftRight, SHIFT_RIGHT)
TF_IPU_SHIM_BINARY_FUNCTIONS(shiftRightSignExtend, SHIFT_RIGHT_SIGN_EXTEND)
TF_IPU_SHIM_BINARY_FUNCTIONS(sub, SUBTRACT)
TF_IPU_SHIM_BINARY_FUNCTIONS(varianceToInvStdDev, VARIANCE_TO_INV_STD_DEV)
#undef TF_IPU_SHIM_BINARY_FUNCTIONS

// Elements of A where the condition is true, else of B.
inline poplar::Tensor select(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,
                             const poplar::Tensor &conditions, poplar::program::Sequence &prog,
                             const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  return map(graph, expr::TernaryOpType::SELECT, A, B, conditions, prog, debugContext, options);
}
inline void selectInPlace(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,
                          const poplar::Tensor &conditions, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  mapInPlace(graph, expr::TernaryOpType::SELECT, A, B, conditions, prog, debugContext, options);
}
inline void selectWithOutput(poplar::Graph &graph, const poplar::Tensor &A, const poplar::Tensor &B,
                             const poplar::Tensor &conditions, const poplar::Tensor &out,
                             poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                             const poplar::OptionFlags &options = {}) {
  mapWithOutput(graph, expr::TernaryOpType::SELECT, A, B, conditions, out, prog, debugContext, options);
}

// Values, kept between minimums and maximums.
inline poplar::Tensor clamp(poplar::Graph &graph, const poplar::Tensor &values, const poplar::Tensor &minimums,
                            const poplar::Tensor &maximums, poplar::program::Sequence &prog,
                            const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  return map(graph, expr::TernaryOpType::CLAMP, values, minimums, maximums, prog, debugContext, options);
}
inline void clampInPlace(poplar::Graph &graph, const poplar::Tensor &values, const poplar::Tensor &minimums,
                         const poplar::Tensor &maximums, poplar::program::Sequence &prog,
                         const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}) {
  mapInPlace(graph, expr::TernaryOpType::CLAMP, values, minimums, maximums, prog, debugContext, options);
}
inline void clampWithOutput(poplar::Graph &graph, const poplar::Tensor &values, const poplar::Tensor &minimums,
                            const poplar::Tensor &maximums, const poplar::Tensor &out,
                            poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
                            const poplar::OptionFlags &options = {}) {
  mapWithOutput(graph, expr::TernaryOpType::CLAMP, values, minimums, maximums, out, prog, debugContext, options);
}

// Conversions between a variance and an inverse standard deviation whose result has another floating-point type.
poplar::Tensor varianceToInvStdDev(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Tensor &epsilon,
                                   poplar::program::Sequence &prog, const poplar::Type dstType,
                                   const poplar::DebugContext &debugContext = {});
poplar::Tensor varianceToInvStdDev(poplar::Graph &graph, const poplar::Tensor &src, const float epsilon,
                                   poplar::program::Sequence &prog, const poplar::Type dstType,
                                   const poplar::DebugContext &debugContext = {});
poplar::Tensor invStdDevToVariance(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Tensor &epsilon,
                                   poplar::program::Sequence &prog, const poplar::Type dstType,
                                   const poplar::DebugContext &debugContext = {});
poplar::Tensor invStdDevToVariance(poplar::Graph &graph, const poplar::Tensor &src, const float epsilon,
                                   poplar::program::Sequence &prog, const poplar::Type dstType,
                                   const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
