// Expressions over the elements of tensors, for popops::map() and similar functions.
//
// Placeholders _1, _2, ... are the elements of the first, second, ... tensor: Tanh(Add(Square(_1), Const(3))), or
// (_1 + 1.0f) * _2. A constant has the type of the other operand.
#ifndef popops_Expr_hpp
#define popops_Expr_hpp

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>
#include <popops/ExprOp.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace popops {
namespace expr {

class Expr {
 public:
  virtual ~Expr() = default;

  template <class T>
  bool isA() const {
    return dynamic_cast<const T *>(this) != nullptr;
  }
  template <class T>
  T *getAs() {
    return dynamic_cast<T *>(this);
  }
  template <class T>
  const T *getAs() const {
    return dynamic_cast<const T *>(this);
  }

  virtual std::unique_ptr<Expr> clone() const = 0;
  // A name that depends on the operations and on the types of the inputs.
  virtual std::string name(const std::vector<poplar::Tensor> &inputs) const = 0;
  virtual bool deepEquals(const Expr &other) const = 0;
  virtual void print(std::ostream &os, unsigned indent = 0, bool prettyPrint = true) const = 0;
};

std::ostream &operator<<(std::ostream &os, const Expr &expr);
bool deepEquals(const Expr &a, const Expr &b);

// Holds any expression.
class Any {
 public:
  Any(const Expr &expr) : expr_(expr.clone()) {}
  operator Expr &() { return *expr_; }
  operator const Expr &() const { return *expr_; }
  std::string name(const std::vector<poplar::Tensor> &inputs) const { return expr_->name(inputs); }

 private:
  std::shared_ptr<Expr> expr_;
};

// A constant of the C++ type's Poplar type.
class Const : public Expr {
 public:
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  Const(T value) : Const(value, typeOf<T>()) {}

  const poplar::Type &getType() const { return type_; }
  double getDataAsDouble() const;
  std::uint64_t getDataForUnsignedIntegral() const;
  std::string printValue() const;

  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new Const(*this)); }
  std::string name(const std::vector<poplar::Tensor> &inputs) const override;
  bool deepEquals(const Expr &other) const override;
  void print(std::ostream &os, unsigned indent = 0, bool prettyPrint = true) const override;

 protected:
  template <typename T>
  Const(T value, poplar::Type type)
      : type_(type), integral_(std::is_integral<T>::value), floating_(static_cast<double>(value)),
        integer_(std::is_integral<T>::value ? static_cast<std::uint64_t>(value) : 0) {}

 private:
  // A double is a float on the device.
  template <typename T>
  static poplar::Type typeOf() {
    return std::is_floating_point<T>::value ? poplar::FLOAT : poplar::equivalent_device_type<T>().value;
  }

  poplar::Type type_;
  bool integral_;
  double floating_;
  std::uint64_t integer_;
};

// A constant of type half.
class ConstHalf : public Const {
 public:
  ConstHalf(float value) : Const(value, poplar::HALF) {}
  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new ConstHalf(*this)); }
};

inline ConstHalf operator""_half(long double value) { return ConstHalf(static_cast<float>(value)); }

// The operand, converted to a type.
class Cast : public Expr {
 public:
  Cast(const Expr &operand, const poplar::Type type) : operand_(operand.clone()), type_(type) {}

  const Expr &getLHS() const { return *operand_; }
  const poplar::Type &getRHSType() const { return type_; }

  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new Cast(*this)); }
  std::string name(const std::vector<poplar::Tensor> &inputs) const override;
  bool deepEquals(const Expr &other) const override;
  void print(std::ostream &os, unsigned indent = 0, bool prettyPrint = true) const override;

 private:
  std::shared_ptr<const Expr> operand_;
  poplar::Type type_;
};

// The element of the tensor with this index, from 1.
class PlaceHolder : public Expr {
 public:
  PlaceHolder(unsigned index) : index_(index) {}

  unsigned getIndex() const { return index_; }

  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new PlaceHolder(*this)); }
  std::string name(const std::vector<poplar::Tensor> &inputs) const override;
  bool deepEquals(const Expr &other) const override;
  void print(std::ostream &os, unsigned indent = 0, bool prettyPrint = true) const override;

 private:
  unsigned index_;
};

const PlaceHolder _1(1), _2(2), _3(3), _4(4), _5(5), _6(6), _7(7), _8(8), _9(9), _10(10);
const PlaceHolder _11(11), _12(12), _13(13), _14(14), _15(15), _16(16), _17(17), _18(18), _19(19), _20(20);

class UnaryOp : public Expr {
 public:
  UnaryOp(UnaryOpType type, const Expr &argument) : type_(type), argument_(argument.clone()) {}

  UnaryOpType getOpType() const { return type_; }
  const Expr &getArg() const { return *argument_; }

  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new UnaryOp(*this)); }
  std::string name(const std::vector<poplar::Tensor> &inputs) const override;
  bool deepEquals(const Expr &other) const override;
  void print(std::ostream &os, unsigned indent = 0, bool prettyPrint = true) const override;

 private:
  UnaryOpType type_;
  std::shared_ptr<const Expr> argument_;
};

class BinaryOp : public Expr {
 public:
  BinaryOp(BinaryOpType type, const Expr &left, const Expr &right)
      : type_(type), left_(left.clone()), right_(right.clone()) {}

  BinaryOpType getOpType() const { return type_; }
  const Expr &getLHS() const { return *left_; }
  const Expr &getRHS() const { return *right_; }

  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new BinaryOp(*this)); }
  std::string name(const std::vector<poplar::Tensor> &inputs) const override;
  bool deepEquals(const Expr &other) const override;
  void print(std::ostream &os, unsigned indent = 0, bool prettyPrint = true) const override;

 private:
  BinaryOpType type_;
  std::shared_ptr<const Expr> left_, right_;
};

class TernaryOp : public Expr {
 public:
  TernaryOp(TernaryOpType type, const Expr &first, const Expr &second, const Expr &third)
      : type_(type), first_(first.clone()), second_(second.clone()), third_(third.clone()) {}

  TernaryOpType getOpType() const { return type_; }
  const Expr &getArg0() const { return *first_; }
  const Expr &getArg1() const { return *second_; }
  const Expr &getArg2() const { return *third_; }

  std::unique_ptr<Expr> clone() const override { return std::unique_ptr<Expr>(new TernaryOp(*this)); }
  std::string name(const std::vector<poplar::Tensor> &inputs) const override;
  bool deepEquals(const Expr &other) const override;
  void print(std::ostream &os, unsigned indent = 0, bool prettyPrint = true) const override;

 private:
  TernaryOpType type_;
  std::shared_ptr<const Expr> first_, second_, third_;
};

// One class for each operation, and C++'s operator where it has one.
#define TF_IPU_SHIM_UNARY_EXPRESSION(Name, OPERATION)                                    \
  class Name : public UnaryOp {                                                          \
   public:                                                                               \
    Name(const Expr &argument) : UnaryOp(UnaryOpType::OPERATION, argument) {}            \
  };

TF_IPU_SHIM_UNARY_EXPRESSION(Abs, ABSOLUTE)
TF_IPU_SHIM_UNARY_EXPRESSION(Asin, ASIN)
TF_IPU_SHIM_UNARY_EXPRESSION(BitwiseNot, BITWISE_NOT)
TF_IPU_SHIM_UNARY_EXPRESSION(Cbrt, CBRT)
TF_IPU_SHIM_UNARY_EXPRESSION(Erf, ERF)
TF_IPU_SHIM_UNARY_EXPRESSION(Ceil, CEIL)
TF_IPU_SHIM_UNARY_EXPRESSION(Cos, COS)
TF_IPU_SHIM_UNARY_EXPRESSION(Exp, EXPONENT)
TF_IPU_SHIM_UNARY_EXPRESSION(Expm1, EXPONENT_MINUS_ONE)
TF_IPU_SHIM_UNARY_EXPRESSION(Exp2, EXPONENT2)
TF_IPU_SHIM_UNARY_EXPRESSION(Floor, FLOOR)
TF_IPU_SHIM_UNARY_EXPRESSION(GeluErf, GELU_ERF)
TF_IPU_SHIM_UNARY_EXPRESSION(Inv, INVERSE)
TF_IPU_SHIM_UNARY_EXPRESSION(IsFinite, IS_FINITE)
TF_IPU_SHIM_UNARY_EXPRESSION(IsInf, IS_INF)
TF_IPU_SHIM_UNARY_EXPRESSION(IsNaN, IS_NAN)
TF_IPU_SHIM_UNARY_EXPRESSION(Log, LOGARITHM)
TF_IPU_SHIM_UNARY_EXPRESSION(Log1p, LOGARITHM_ONE_PLUS)
TF_IPU_SHIM_UNARY_EXPRESSION(Not, LOGICAL_NOT)
TF_IPU_SHIM_UNARY_EXPRESSION(Neg, NEGATE)
TF_IPU_SHIM_UNARY_EXPRESSION(NearbyInt, NEARBY_INT)
TF_IPU_SHIM_UNARY_EXPRESSION(Signum, SIGNUM)
TF_IPU_SHIM_UNARY_EXPRESSION(Sin, SIN)
TF_IPU_SHIM_UNARY_EXPRESSION(Tan, TAN)
TF_IPU_SHIM_UNARY_EXPRESSION(Tanh, TANH)
TF_IPU_SHIM_UNARY_EXPRESSION(Round, ROUND)
TF_IPU_SHIM_UNARY_EXPRESSION(Trunc, TRUNC)
TF_IPU_SHIM_UNARY_EXPRESSION(Sqrt, SQRT)
TF_IPU_SHIM_UNARY_EXPRESSION(Square, SQUARE)
TF_IPU_SHIM_UNARY_EXPRESSION(Sigmoid, SIGMOID)
TF_IPU_SHIM_UNARY_EXPRESSION(Rsqrt, RSQRT)
#undef TF_IPU_SHIM_UNARY_EXPRESSION

inline BitwiseNot operator~(const Expr &argument) { return BitwiseNot(argument); }
inline Not operator!(const Expr &argument) { return Not(argument); }
inline Neg operator-(const Expr &argument) { return Neg(argument); }

#define TF_IPU_SHIM_BINARY_EXPRESSION(Name, OPERATION)                                                       \
  class Name : public BinaryOp {                                                                             \
   public:                                                                                                   \
    Name(const Expr &left, const Expr &right) : BinaryOp(BinaryOpType::OPERATION, left, right) {}            \
  };

#define TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Name, OPERATION, SYMBOL)                                  \
  TF_IPU_SHIM_BINARY_EXPRESSION(Name, OPERATION)                                                             \
  inline Name operator SYMBOL(const Expr &left, const Expr &right) { return Name(left, right); }             \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>                                \
  inline Name operator SYMBOL(const T &left, const Expr &right) {                                            \
    return Name(Const(left), right);                                                                         \
  }                                                                                                          \
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>                                \
  inline Name operator SYMBOL(const Expr &left, const T &right) {                                            \
    return Name(left, Const(right));                                                                         \
  }

TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Add, ADD, +)
TF_IPU_SHIM_BINARY_EXPRESSION(Atan2, ATAN2)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(BitwiseAnd, BITWISE_AND, &)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(BitwiseOr, BITWISE_OR, |)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(BitwiseXor, BITWISE_XOR, ^)
TF_IPU_SHIM_BINARY_EXPRESSION(BitwiseXnor, BITWISE_XNOR)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Divide, DIVIDE, /)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Equal, EQUAL, ==)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Gte, GREATER_THAN_EQUAL, >=)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Gt, GREATER_THAN, >)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Lte, LESS_THAN_EQUAL, <=)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(And, LOGICAL_AND, &&)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Or, LOGICAL_OR, ||)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Lt, LESS_THAN, <)
TF_IPU_SHIM_BINARY_EXPRESSION(InvStdDevToVariance, INV_STD_DEV_TO_VARIANCE)
TF_IPU_SHIM_BINARY_EXPRESSION(Max, MAXIMUM)
TF_IPU_SHIM_BINARY_EXPRESSION(Min, MINIMUM)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Mul, MULTIPLY, *)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(NotEqual, NOT_EQUAL, !=)
TF_IPU_SHIM_BINARY_EXPRESSION(Pow, POWER)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Rem, REMAINDER, %)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Shl, SHIFT_LEFT, <<)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Shr, SHIFT_RIGHT, >>)
TF_IPU_SHIM_BINARY_EXPRESSION(ShrSE, SHIFT_RIGHT_SIGN_EXTEND)
TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR(Sub, SUBTRACT, -)
TF_IPU_SHIM_BINARY_EXPRESSION(VarianceToInvStdDev, VARIANCE_TO_INV_STD_DEV)
#undef TF_IPU_SHIM_BINARY_EXPRESSION_AND_OPERATOR
#undef TF_IPU_SHIM_BINARY_EXPRESSION

// The first operand where the third is true, else the second.
class Select : public TernaryOp {
 public:
  Select(const Expr &ifTrue, const Expr &ifFalse, const Expr &condition)
      : TernaryOp(TernaryOpType::SELECT, ifTrue, ifFalse, condition) {}
};

// The first operand, kept between the second and the third.
class Clamp : public TernaryOp {
 public:
  Clamp(const Expr &value, const Expr &lowest, const Expr &highest)
      : TernaryOp(TernaryOpType::CLAMP, value, lowest, highest) {}
};

}  // namespace expr
}  // namespace popops

#endif
