// Computes element-wise operations of one operand, such as Abs and Exp, on blocks of elements.
#pragma GCC optimize("O3,no-math-errno,no-trapping-math")  // the loops are vectorised
#include <Eigen/Core>

#include "block_arithmetic.hpp"

namespace popops::detail {

namespace {

// An operation on elements of any type T.
#define OPERATION(Name, EXPRESSION) BLOCK_OPERATION(Name, (T a), EXPRESSION)

OPERATION(Abs, magnitude(a))
OPERATION(Asin, std::asin(a))
OPERATION(BitwiseNot, static_cast<T>(~a))
OPERATION(Cbrt, std::cbrt(a))
OPERATION(Ceil, std::ceil(a))
OPERATION(Cos, std::cos(a))
OPERATION(CountZeros, countZeros(a))
OPERATION(Erf, std::erf(a))
OPERATION(Exp, std::exp(a))
OPERATION(Expm1, std::expm1(a))
OPERATION(Exp2, std::exp2(a))
OPERATION(Floor, std::floor(a))
OPERATION(GeluErf, a * T(0.5) * (T(1) + std::erf(a * T(0.70710678118654752))))
OPERATION(Inverse, T(1) / a)
OPERATION(IsFinite, static_cast<bool>(std::isfinite(a)))
OPERATION(IsInf, static_cast<bool>(std::isinf(a)))
OPERATION(IsNaN, static_cast<bool>(std::isnan(a)))
OPERATION(Log, std::log(a))
OPERATION(Log1p, std::log1p(a))
OPERATION(LogicalNot, !static_cast<bool>(a))
OPERATION(Negate, static_cast<T>(IS_FLOAT<T> ? -a : wrap(T(0)) - wrap(a)))
OPERATION(NearbyInt, std::nearbyint(a))
OPERATION(PopCount, countOnes(a))
OPERATION(Relu, a > T(0) || a != a ? a : T(0))
OPERATION(Sign, signOf(a))
OPERATION(Sin, std::sin(a))
OPERATION(Tan, std::tan(a))
OPERATION(Tanh, std::tanh(a))
OPERATION(Round, std::round(a))
OPERATION(Sqrt, squareRoot(a))
OPERATION(Square, static_cast<T>(wrap(a) * wrap(a)))
OPERATION(Sigmoid, T(1) / (T(1) + std::exp(-a)))
OPERATION(Rsqrt, T(1) / std::sqrt(a))
OPERATION(Trunc, std::trunc(a))
#undef OPERATION

template <class T>
BlockFunction unaryFunction(expr::UnaryOpType op) {
  using Op = expr::UnaryOpType;
  switch (op) {
    case Op::ABSOLUTE: return unaryLoopOf<Abs, T, IS_NUMBER<T>>();
    case Op::ASIN: return unaryLoopOf<Asin, T, IS_FLOAT<T>>();
    case Op::BITWISE_NOT: return unaryLoopOf<BitwiseNot, T, IS_INTEGER<T>>();
    case Op::CBRT: return unaryLoopOf<Cbrt, T, IS_FLOAT<T>>();
    case Op::CEIL: return unaryLoopOf<Ceil, T, IS_FLOAT<T>>();
    case Op::COS: return unaryLoopOf<Cos, T, IS_FLOAT<T>>();
    case Op::COUNT_LEADING_ZEROS: return unaryLoopOf<CountZeros, T, IS_INTEGER<T>>();
    case Op::ERF: return unaryLoopOf<Erf, T, IS_FLOAT<T>>();
    case Op::EXPONENT: return unaryLoopOf<Exp, T, IS_FLOAT<T>>();
    case Op::EXPONENT_MINUS_ONE: return unaryLoopOf<Expm1, T, IS_FLOAT<T>>();
    case Op::EXPONENT2: return unaryLoopOf<Exp2, T, IS_FLOAT<T>>();
    case Op::FLOOR: return unaryLoopOf<Floor, T, IS_FLOAT<T>>();
    case Op::GELU_ERF: return unaryLoopOf<GeluErf, T, IS_FLOAT<T>>();
    case Op::INVERSE: return unaryLoopOf<Inverse, T, IS_FLOAT<T>>();
    case Op::IS_FINITE: return unaryLoopOf<IsFinite, T, IS_FLOAT<T>>();
    case Op::IS_INF: return unaryLoopOf<IsInf, T, IS_FLOAT<T>>();
    case Op::IS_NAN: return unaryLoopOf<IsNaN, T, IS_FLOAT<T>>();
    case Op::LOGARITHM: return unaryLoopOf<Log, T, IS_FLOAT<T>>();
    case Op::LOGARITHM_ONE_PLUS: return unaryLoopOf<Log1p, T, IS_FLOAT<T>>();
    case Op::LOGICAL_NOT: return unaryLoopOf<LogicalNot, T, std::is_same_v<T, bool>>();
    case Op::NEGATE: return unaryLoopOf<Negate, T, IS_NUMBER<T>>();
    case Op::NEARBY_INT: return unaryLoopOf<NearbyInt, T, IS_FLOAT<T>>();
    case Op::POPCOUNT: return unaryLoopOf<PopCount, T, IS_INTEGER<T>>();
    case Op::RELU: return unaryLoopOf<Relu, T, IS_NUMBER<T>>();
    case Op::SIGNUM: return unaryLoopOf<Sign, T, IS_NUMBER<T>>();
    case Op::SIN: return unaryLoopOf<Sin, T, IS_FLOAT<T>>();
    case Op::TAN: return unaryLoopOf<Tan, T, IS_FLOAT<T>>();
    case Op::TANH: return unaryLoopOf<Tanh, T, IS_FLOAT<T>>();
    case Op::ROUND: return unaryLoopOf<Round, T, IS_FLOAT<T>>();
    case Op::SQRT: return unaryLoopOf<Sqrt, T, IS_NUMBER<T>>();
    case Op::SQUARE: return unaryLoopOf<Square, T, IS_NUMBER<T>>();
    case Op::SIGMOID: return unaryLoopOf<Sigmoid, T, IS_FLOAT<T>>();
    case Op::RSQRT: return unaryLoopOf<Rsqrt, T, IS_FLOAT<T>>();
    case Op::TRUNC: return unaryLoopOf<Trunc, T, IS_FLOAT<T>>();
  }
  return nullptr;
}

// Functions of floats that Eigen computes by vectors.
#define VECTOR_LOOP(name, METHOD)                                                              \
  void name(const void *const *operands, void *result, std::size_t count) {                   \
    const Eigen::Map<const Eigen::ArrayXf> a(static_cast<const float *>(operands[0]), count);  \
    Eigen::Map<Eigen::ArrayXf>(static_cast<float *>(result), count) = a.METHOD();              \
  }

VECTOR_LOOP(vectorExp, exp)
VECTOR_LOOP(vectorLog, log)
VECTOR_LOOP(vectorSin, sin)
VECTOR_LOOP(vectorCos, cos)
VECTOR_LOOP(vectorTanh, tanh)
#undef VECTOR_LOOP

void vectorSigmoid(const void *const *operands, void *result, std::size_t count) {
  const Eigen::Map<const Eigen::ArrayXf> a(static_cast<const float *>(operands[0]), count);
  Eigen::Map<Eigen::ArrayXf>(static_cast<float *>(result), count) = (1.0f + (-a).exp()).inverse();
}

BlockFunction vectorFunction(expr::UnaryOpType op) {
  using Op = expr::UnaryOpType;
  switch (op) {
    case Op::EXPONENT: return &vectorExp;
    case Op::LOGARITHM: return &vectorLog;
    case Op::SIN: return &vectorSin;
    case Op::COS: return &vectorCos;
    case Op::TANH: return &vectorTanh;
    case Op::SIGMOID: return &vectorSigmoid;
    default: return nullptr;
  }
}

}  // namespace

BlockFunction blockFunction(expr::UnaryOpType op, const poplar::Type &type) {
  if (poputil::detail::isFloating(type))
    if (const auto function = vectorFunction(op)) return function;
  return poputil::detail::visitType(type, [op](auto tag) {
    return unaryFunction<poputil::detail::Arithmetic<typename decltype(tag)::type>>(op);
  });
}

bool isPredicate(expr::UnaryOpType op) {
  using Op = expr::UnaryOpType;
  return op == Op::IS_FINITE || op == Op::IS_INF || op == Op::IS_NAN || op == Op::LOGICAL_NOT;
}

}  // namespace popops::detail
