// Compiles expressions and runs them on blocks.
#include "expression_program.hpp"

#include <algorithm>
#include <optional>
#include <popops/detail/names.hpp>
#include <poputil/detail/elements.hpp>

namespace popops::detail {

namespace {

using poplar::Type;
using poputil::detail::typeName;
using Types = std::vector<Type>;

std::vector<const expr::Expr *> argumentsOf(const expr::Expr &expression) {
  if (const auto *unary = expression.getAs<expr::UnaryOp>()) return {&unary->getArg()};
  if (const auto *binary = expression.getAs<expr::BinaryOp>()) return {&binary->getLHS(), &binary->getRHS()};
  const auto &ternary = *expression.getAs<expr::TernaryOp>();
  return {&ternary.getArg0(), &ternary.getArg1(), &ternary.getArg2()};
}

std::string operationName(const expr::Expr &expression) {
  if (const auto *unary = expression.getAs<expr::UnaryOp>()) return nameOf(unary->getOpType());
  if (const auto *binary = expression.getAs<expr::BinaryOp>()) return nameOf(binary->getOpType());
  return nameOf(expression.getAs<expr::TernaryOp>()->getOpType());
}

bool isSelect(const expr::Expr &expression) {
  const auto *ternary = expression.getAs<expr::TernaryOp>();
  return ternary != nullptr && ternary->getOpType() == expr::TernaryOpType::SELECT;
}

bool hasPredicateResult(const expr::Expr &expression) {
  if (const auto *unary = expression.getAs<expr::UnaryOp>()) return isPredicate(unary->getOpType());
  if (const auto *binary = expression.getAs<expr::BinaryOp>()) return isPredicate(binary->getOpType());
  return false;
}

// The operands that must have the same type: all but Select's condition.
std::vector<const expr::Expr *> alikeArguments(const expr::Expr &expression) {
  auto arguments = argumentsOf(expression);
  if (isSelect(expression)) arguments.pop_back();
  return arguments;
}

// The type that the tensors and casts in an expression give it; none if there are only constants.
std::optional<Type> knownType(const expr::Expr &expression, const Types &inputs) {
  if (const auto *cast = expression.getAs<expr::Cast>()) return cast->getRHSType();
  if (const auto *placeholder = expression.getAs<expr::PlaceHolder>())
    return placeholder->getIndex() <= inputs.size() ? std::optional(inputs[placeholder->getIndex() - 1]) : std::nullopt;
  if (expression.isA<expr::Const>()) return std::nullopt;
  if (hasPredicateResult(expression)) return poplar::BOOL;
  for (const auto *argument : alikeArguments(expression))
    if (const auto type = knownType(*argument, inputs)) return type;
  return std::nullopt;
}

// The type of an expression of constants: floating point if one of them is.
Type constantType(const expr::Expr &expression) {
  if (const auto *constant = expression.getAs<expr::Const>()) return constant->getType();
  std::optional<Type> type;
  for (const auto *argument : alikeArguments(expression)) {
    const auto other = constantType(*argument);
    if (!type || (!poputil::detail::isFloating(*type) && poputil::detail::isFloating(other))) type = other;
  }
  return *type;
}

BlockFunction functionOf(const expr::Expr &expression, const Type &type) {
  if (const auto *unary = expression.getAs<expr::UnaryOp>()) return blockFunction(unary->getOpType(), type);
  if (const auto *binary = expression.getAs<expr::BinaryOp>()) return blockFunction(binary->getOpType(), type);
  return blockFunction(expression.getAs<expr::TernaryOp>()->getOpType(), type);
}

[[noreturn]] void failOnTypes(const std::string &operation, const Type &first, const Type &second) {
  poputil::detail::fail("popops::map", "the operands of " + operation + " have the types " + typeName(first) + " and " +
                        typeName(second) + "; expected the same", "Cast one of them");
}

// Copies the elements that indices [begin, begin + count) of a shape have by strides.
template <class T>
void gather(const T *from, T *to, const std::vector<std::size_t> &shape, const std::vector<std::size_t> &strides,
            std::size_t begin, std::size_t count) {
  std::vector<std::size_t> index(shape.size());
  std::size_t offset = 0;
  for (std::size_t dim = shape.size(), rest = begin; dim-- > 0; rest /= shape[dim]) {
    index[dim] = rest % shape[dim];
    offset += index[dim] * strides[dim];
  }
  for (std::size_t done = 0; done != count;) {
    const auto last = shape.size() - 1;
    const auto run = std::min(count - done, shape[last] - index[last]);
    for (std::size_t i = 0; i != run; ++i) to[done + i] = from[offset + i * strides[last]];
    done += run;
    index[last] += run;
    offset += run * strides[last];
    for (std::size_t dim = last; index[dim] == shape[dim] && dim > 0; --dim) {
      offset += strides[dim - 1] - shape[dim] * strides[dim];
      index[dim] = 0;
      ++index[dim - 1];
    }
  }
}

}  // namespace

ExpressionProgram::ExpressionProgram(const expr::Expr &expression, const Types &inputs)
    : result_(compile(expression, inputs, nullptr)) {}

std::size_t ExpressionProgram::compile(const expr::Expr &expression, const Types &inputs, const Type *hint) {
  if (const auto *constant = expression.getAs<expr::Const>()) return compileConstant(*constant, hint);
  if (const auto *placeholder = expression.getAs<expr::PlaceHolder>()) return compileInput(*placeholder, inputs);
  if (const auto *cast = expression.getAs<expr::Cast>()) return compileCast(*cast, inputs);
  return compileOperation(expression, inputs, hint);
}

std::size_t ExpressionProgram::compileConstant(const expr::Const &constant, const Type *hint) {
  Register value{hint != nullptr ? *hint : constant.getType(), Source::CONSTANT};
  value.floating = constant.getDataAsDouble();
  value.integer = constant.getDataForUnsignedIntegral();
  registers_.push_back(value);
  return registers_.size() - 1;
}

std::size_t ExpressionProgram::compileInput(const expr::PlaceHolder &placeholder, const Types &inputs) {
  const auto index = placeholder.getIndex();
  if (index == 0 || index > inputs.size())
    poputil::detail::fail("popops::map", "the expression has the placeholder _" + std::to_string(index) + " and " +
                          std::to_string(inputs.size()) + " tensors", "Pass a tensor for each placeholder");
  for (std::size_t i = 0; i != registers_.size(); ++i)
    if (registers_[i].source == Source::INPUT && registers_[i].input == index - 1) return i;
  Register value{inputs[index - 1], Source::INPUT};
  value.input = index - 1;
  registers_.push_back(value);
  return registers_.size() - 1;
}

std::size_t ExpressionProgram::compileCast(const expr::Cast &cast, const Types &inputs) {
  const auto operand = compile(cast.getLHS(), inputs, nullptr);
  return addInstruction(cast.getRHSType(), castFunction(registers_[operand].type, cast.getRHSType()), {operand});
}

std::size_t ExpressionProgram::compileOperation(const expr::Expr &expression, const Types &inputs, const Type *hint) {
  const bool predicate = hasPredicateResult(expression);
  std::optional<Type> type;
  for (const auto *argument : alikeArguments(expression))
    if (!type) type = knownType(*argument, inputs);
  if (!type) {
    if (hint != nullptr && !predicate) {
      type = *hint;
    } else {
      for (const auto *argument : alikeArguments(expression)) {
        const auto own = constantType(*argument);
        if (!type || poputil::detail::isFloating(own)) type = own;
      }
    }
  }
  std::vector<std::size_t> operands;
  for (const auto *argument : argumentsOf(expression)) {
    const bool condition = isSelect(expression) && operands.size() == 2;
    const auto expected = condition ? poplar::BOOL : *type;
    operands.push_back(compile(*argument, inputs, &expected));
    const auto received = registers_[operands.back()].type;
    if (received != expected) failOnTypes(operationName(expression), expected, received);
  }
  const auto function = functionOf(expression, *type);
  if (function == nullptr)
    poputil::detail::fail("popops::map", operationName(expression) + " has no form for elements of type " +
                          typeName(*type), "Cast the tensor");
  return addInstruction(predicate ? poplar::BOOL : *type, function, operands);
}

std::size_t ExpressionProgram::addInstruction(const Type &type, BlockFunction function,
                                              std::vector<std::size_t> operands) {
  Register value{type, Source::INSTRUCTION};
  value.function = function;
  value.operand_count = operands.size();
  std::copy(operands.begin(), operands.end(), value.operands.begin());
  registers_.push_back(value);
  return registers_.size() - 1;
}

void ExpressionProgram::fillConstant(const Register &constant, void *block) const {
  poputil::detail::visitType(constant.type, [&](auto tag) {
    using T = poputil::detail::Arithmetic<typename decltype(tag)::type>;
    T value;
    if constexpr (std::is_floating_point_v<T>) value = static_cast<T>(constant.floating);
    else if constexpr (std::is_same_v<T, bool>) value = constant.floating != 0;
    else value = static_cast<T>(constant.integer);
    if (constant.type == poplar::HALF) value = static_cast<T>(poputil::detail::roundToHalf(static_cast<float>(value)));
    std::fill_n(static_cast<T *>(block), BLOCK, value);
  });
}

ExpressionProgram::Workspace::Workspace(const ExpressionProgram &program)
    : memory_(program.registers_.size() * BLOCK) {
  for (std::size_t i = 0; i != program.registers_.size(); ++i)
    if (program.registers_[i].source == Source::CONSTANT) program.fillConstant(program.registers_[i], block(i));
}

const void *ExpressionProgram::operandData(Workspace &workspace, std::size_t index,
                                           const std::vector<const void *> &inputs,
                                           const std::vector<InputLayout> &layouts,
                                           const std::vector<std::size_t> &shape, std::size_t begin,
                                           std::size_t count) const {
  const auto &value = registers_[index];
  auto *block = workspace.block(index);
  if (value.source != Source::INPUT) return block;
  const auto &layout = layouts[value.input];
  const auto size = poplar::detail::typeSize(value.type);
  const void *data = static_cast<const char *>(inputs[value.input]) + (layout.contiguous ? begin * size : 0);
  if (layout.contiguous && value.type != poplar::HALF) return data;
  if (!layout.contiguous) {
    std::array<std::uint64_t, BLOCK> raw;
    auto *gathered = value.type == poplar::HALF ? static_cast<void *>(raw.data()) : block;
    poputil::detail::visitSize(value.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      gather(static_cast<const T *>(data), static_cast<T *>(gathered), shape, layout.strides, begin, count);
    });
    if (value.type == poplar::HALF) loadHalves(raw.data(), static_cast<float *>(block), count);
    return block;
  }
  loadHalves(data, static_cast<float *>(block), count);
  return block;
}

void ExpressionProgram::run(Workspace &workspace, const std::vector<const void *> &inputs,
                            const std::vector<InputLayout> &layouts, const std::vector<std::size_t> &shape,
                            std::size_t begin, std::size_t count, void *out) const {
  std::vector<const void *> data(registers_.size());
  for (std::size_t i = 0; i != registers_.size(); ++i) {
    const auto &value = registers_[i];
    data[i] = operandData(workspace, i, inputs, layouts, shape, begin, count);
    if (value.source != Source::INSTRUCTION) continue;
    const bool half = value.type == poplar::HALF;
    auto *block = i == result_ && !half ? out : workspace.block(i);
    std::array<const void *, 3> operands{};
    for (std::size_t k = 0; k != value.operand_count; ++k) operands[k] = data[value.operands[k]];
    value.function(operands.data(), block, count);
    if (half) roundToHalves(static_cast<float *>(block), count);
    data[i] = block;
  }
  const auto &type = resultType();
  if (type == poplar::HALF) storeHalves(static_cast<const float *>(data[result_]), out, count);
  else if (data[result_] != out) std::memcpy(out, data[result_], count * poplar::detail::typeSize(type));
}

}  // namespace popops::detail
