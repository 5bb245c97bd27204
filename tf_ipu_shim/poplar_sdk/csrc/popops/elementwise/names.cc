// Converts operations and sort orders to and from their names.
#include <cctype>
#include <istream>
#include <ostream>
#include <popops/ExprOpUtils.hpp>
#include <popops/Operation.hpp>
#include <popops/SortOrder.hpp>
#include <popops/detail/names.hpp>
#include <poputil/detail/elements.hpp>
#include <string>

namespace popops {

namespace {

constexpr const char *UNARY_NAMES[] = {
    "ABSOLUTE", "ASIN", "BITWISE_NOT", "CBRT", "CEIL", "COS", "COUNT_LEADING_ZEROS", "ERF", "EXPONENT",
    "EXPONENT_MINUS_ONE", "EXPONENT2", "FLOOR", "GELU_ERF", "INVERSE", "IS_FINITE", "IS_INF", "IS_NAN", "LOGARITHM",
    "LOGARITHM_ONE_PLUS", "LOGICAL_NOT", "NEGATE", "NEARBY_INT", "POPCOUNT", "RELU", "SIGNUM", "SIN", "TAN", "TANH",
    "ROUND", "SQRT", "SQUARE", "SIGMOID", "RSQRT", "TRUNC"};

constexpr const char *BINARY_NAMES[] = {
    "ADD", "ATAN2", "BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "BITWISE_XNOR", "DIVIDE", "EQUAL",
    "GREATER_THAN_EQUAL", "GREATER_THAN", "INV_STD_DEV_TO_VARIANCE", "LESS_THAN_EQUAL", "LOGICAL_AND", "LOGICAL_OR",
    "LESS_THAN", "MAXIMUM", "MINIMUM", "MULTIPLY", "NOT_EQUAL", "POWER", "REMAINDER", "SHIFT_LEFT", "SHIFT_RIGHT",
    "SHIFT_RIGHT_SIGN_EXTEND", "SUBTRACT", "VARIANCE_TO_INV_STD_DEV"};

constexpr const char *TERNARY_NAMES[] = {"CLAMP", "SELECT"};

constexpr const char *REDUCTION_NAMES[] = {"ADD", "MUL", "MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD",
                                           "LOG_ADD"};

constexpr const char *ORDER_NAMES[] = {"NONE", "ASCENDING", "DESCENDING"};

}  // namespace

namespace detail {

const char *nameOf(expr::UnaryOpType op) { return UNARY_NAMES[static_cast<unsigned>(op)]; }
const char *nameOf(expr::BinaryOpType op) { return BINARY_NAMES[static_cast<unsigned>(op)]; }
const char *nameOf(expr::TernaryOpType op) { return TERNARY_NAMES[static_cast<unsigned>(op)]; }

std::string camelCase(const std::string &name) {
  std::string result;
  bool first = true;
  for (const char c : name) {
    if (c != '_') result += static_cast<char>(first ? c : std::tolower(static_cast<unsigned char>(c)));
    first = c == '_';
  }
  return result;
}

}  // namespace detail

namespace expr::ostream_ext {

std::ostream &operator<<(std::ostream &os, const UnaryOpType &t) { return os << detail::nameOf(t); }
std::ostream &operator<<(std::ostream &os, const BinaryOpType &t) { return os << detail::nameOf(t); }
std::ostream &operator<<(std::ostream &os, const TernaryOpType &t) { return os << detail::nameOf(t); }

}  // namespace expr::ostream_ext

std::ostream &operator<<(std::ostream &os, const Operation &op) {
  return os << REDUCTION_NAMES[static_cast<unsigned>(op)];
}

std::istream &operator>>(std::istream &in, Operation &op) {
  std::string token;
  in >> token;
  unsigned index = 0;
  for (const auto *name : REDUCTION_NAMES) {
    if (token == name) {
      op = static_cast<Operation>(index);
      return in;
    }
    ++index;
  }
  poputil::detail::fail("Reading a reduction's operation", "there is no operation '" + token + "'",
                        "Write ADD, MUL, MIN, MAX, LOGICAL_AND, LOGICAL_OR, SQUARE_ADD or LOG_ADD");
}

std::ostream &operator<<(std::ostream &os, const SortOrder &order) {
  return os << ORDER_NAMES[static_cast<unsigned>(order)];
}

}  // namespace popops
