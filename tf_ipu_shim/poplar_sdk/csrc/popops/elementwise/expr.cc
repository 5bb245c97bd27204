// Names, compares and prints the expressions of popops::map().
#include <ostream>
#include <popops/Expr.hpp>
#include <popops/detail/names.hpp>
#include <poputil/detail/elements.hpp>
#include <sstream>

namespace popops::expr {

namespace {

using Tensors = std::vector<poplar::Tensor>;

// One line of a printed tree.
void printLine(std::ostream &os, unsigned indent, bool pretty, const std::string &text) {
  if (pretty) os << std::string(2 * indent, ' ') << text << '\n';
  else os << text << ' ';
}

// The name without characters that a C++ identifier has not.
std::string identifier(std::string text) {
  for (auto &c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

}  // namespace

std::ostream &operator<<(std::ostream &os, const Expr &expr) {
  expr.print(os);
  return os;
}

bool deepEquals(const Expr &a, const Expr &b) { return a.deepEquals(b); }

double Const::getDataAsDouble() const { return floating_; }

std::uint64_t Const::getDataForUnsignedIntegral() const {
  return integral_ ? integer_ : static_cast<std::uint64_t>(static_cast<std::int64_t>(floating_));
}

std::string Const::printValue() const {
  std::ostringstream text;
  if (type_ == poplar::BOOL) text << (integer_ != 0 ? "true" : "false");
  else if (integral_ && floating_ < 0) text << static_cast<std::int64_t>(integer_);
  else if (integral_) text << integer_;
  else text << floating_;
  return text.str();
}

std::string Const::name(const Tensors &) const {
  return "C" + identifier(printValue()) + identifier(poputil::detail::typeName(type_));
}

bool Const::deepEquals(const Expr &other) const {
  const auto *constant = other.getAs<Const>();
  return constant != nullptr && type_ == constant->type_ && integral_ == constant->integral_ &&
         (integral_ ? integer_ == constant->integer_ : floating_ == constant->floating_);
}

void Const::print(std::ostream &os, unsigned indent, bool prettyPrint) const {
  printLine(os, indent, prettyPrint, "Const " + printValue() + " " + poputil::detail::typeName(type_));
}

std::string Cast::name(const Tensors &inputs) const {
  return "Cast" + operand_->name(inputs) + "To" + identifier(poputil::detail::typeName(type_));
}

bool Cast::deepEquals(const Expr &other) const {
  const auto *cast = other.getAs<Cast>();
  return cast != nullptr && type_ == cast->type_ && operand_->deepEquals(*cast->operand_);
}

void Cast::print(std::ostream &os, unsigned indent, bool prettyPrint) const {
  printLine(os, indent, prettyPrint, "Cast to " + poputil::detail::typeName(type_));
  operand_->print(os, indent + 1, prettyPrint);
}

std::string PlaceHolder::name(const Tensors &inputs) const {
  const auto type = index_ <= inputs.size() ? identifier(poputil::detail::typeName(inputs[index_ - 1].elementType())) : "";
  return "_" + std::to_string(index_) + type;
}

bool PlaceHolder::deepEquals(const Expr &other) const {
  const auto *placeholder = other.getAs<PlaceHolder>();
  return placeholder != nullptr && index_ == placeholder->index_;
}

void PlaceHolder::print(std::ostream &os, unsigned indent, bool prettyPrint) const {
  printLine(os, indent, prettyPrint, "_" + std::to_string(index_));
}

std::string UnaryOp::name(const Tensors &inputs) const {
  return detail::nameOf(type_) + ("_" + argument_->name(inputs));
}

bool UnaryOp::deepEquals(const Expr &other) const {
  const auto *unary = other.getAs<UnaryOp>();
  return unary != nullptr && type_ == unary->type_ && argument_->deepEquals(*unary->argument_);
}

void UnaryOp::print(std::ostream &os, unsigned indent, bool prettyPrint) const {
  printLine(os, indent, prettyPrint, detail::nameOf(type_));
  argument_->print(os, indent + 1, prettyPrint);
}

std::string BinaryOp::name(const Tensors &inputs) const {
  return detail::nameOf(type_) + ("_" + left_->name(inputs)) + "_" + right_->name(inputs);
}

bool BinaryOp::deepEquals(const Expr &other) const {
  const auto *binary = other.getAs<BinaryOp>();
  return binary != nullptr && type_ == binary->type_ && left_->deepEquals(*binary->left_) &&
         right_->deepEquals(*binary->right_);
}

void BinaryOp::print(std::ostream &os, unsigned indent, bool prettyPrint) const {
  printLine(os, indent, prettyPrint, detail::nameOf(type_));
  left_->print(os, indent + 1, prettyPrint);
  right_->print(os, indent + 1, prettyPrint);
}

std::string TernaryOp::name(const Tensors &inputs) const {
  return detail::nameOf(type_) + ("_" + first_->name(inputs)) + "_" + second_->name(inputs) + "_" +
         third_->name(inputs);
}

bool TernaryOp::deepEquals(const Expr &other) const {
  const auto *ternary = other.getAs<TernaryOp>();
  return ternary != nullptr && type_ == ternary->type_ && first_->deepEquals(*ternary->first_) &&
         second_->deepEquals(*ternary->second_) && third_->deepEquals(*ternary->third_);
}

void TernaryOp::print(std::ostream &os, unsigned indent, bool prettyPrint) const {
  printLine(os, indent, prettyPrint, detail::nameOf(type_));
  first_->print(os, indent + 1, prettyPrint);
  second_->print(os, indent + 1, prettyPrint);
  third_->print(os, indent + 1, prettyPrint);
}

}  // namespace popops::expr
