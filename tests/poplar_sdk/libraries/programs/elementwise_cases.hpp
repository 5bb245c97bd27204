// Cases of poputil, of element-wise functions and casts.
#pragma once

#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/ExprOpUtils.hpp>
#include <popops/Fill.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/Zero.hpp>
#include <sstream>

#include "cases.hpp"

namespace pe = popops::expr;

template <class Op>
std::string nameOf(Op op) {
  using namespace popops::expr::ostream_ext;
  std::ostringstream text;
  text << op;
  return text.str();
}

// All operations that exist for the type, each as an output of its name.
inline void unaryCase(Case &c, const Type &type, double low, double high, const std::vector<pe::UnaryOpType> &ops) {
  const auto a = c.input("a", type, {2500}, low, high);
  for (auto op : ops) c.output(nameOf(op), popops::map(c.graph, op, a, c.prog));
}

inline void binaryCase(Case &c, const Type &type, double low, double high, const std::vector<pe::BinaryOpType> &ops) {
  const auto a = c.input("a", type, {41, 37}, low, high), b = c.input("b", type, {41, 37}, low, high);
  for (auto op : ops) c.output(nameOf(op), popops::map(c.graph, op, a, b, c.prog));
}

inline std::vector<NamedCase> elementwiseCases() {
  using U = pe::UnaryOpType;
  using B = pe::BinaryOpType;
  const std::vector<U> any_sign{U::ABSOLUTE, U::CBRT, U::CEIL, U::COS, U::ERF, U::EXPONENT, U::EXPONENT_MINUS_ONE,
                                U::EXPONENT2, U::FLOOR, U::GELU_ERF, U::INVERSE, U::IS_FINITE, U::IS_INF, U::IS_NAN,
                                U::NEGATE, U::NEARBY_INT, U::RELU, U::SIGNUM, U::SIN, U::TAN, U::TANH, U::ROUND,
                                U::SQUARE, U::SIGMOID, U::TRUNC};
  const std::vector<U> positive{U::ASIN, U::LOGARITHM, U::LOGARITHM_ONE_PLUS, U::SQRT, U::RSQRT};
  const std::vector<U> integer{U::ABSOLUTE, U::BITWISE_NOT, U::COUNT_LEADING_ZEROS, U::NEGATE, U::POPCOUNT,
                               U::RELU, U::SIGNUM, U::SQUARE};
  const std::vector<B> floating{B::ADD, B::ATAN2, B::DIVIDE, B::EQUAL, B::GREATER_THAN_EQUAL, B::GREATER_THAN,
                                B::LESS_THAN_EQUAL, B::LESS_THAN, B::MAXIMUM, B::MINIMUM, B::MULTIPLY, B::NOT_EQUAL,
                                B::REMAINDER, B::SUBTRACT};
  const std::vector<B> positive_binary{B::POWER, B::INV_STD_DEV_TO_VARIANCE, B::VARIANCE_TO_INV_STD_DEV};
  const std::vector<B> integers{B::ADD, B::BITWISE_AND, B::BITWISE_OR, B::BITWISE_XOR, B::BITWISE_XNOR, B::EQUAL,
                                B::GREATER_THAN, B::LESS_THAN_EQUAL, B::MAXIMUM, B::MINIMUM, B::MULTIPLY,
                                B::NOT_EQUAL, B::SUBTRACT};
  const std::vector<B> divisions{B::DIVIDE, B::REMAINDER};
  const std::vector<B> shifts{B::SHIFT_LEFT, B::SHIFT_RIGHT, B::SHIFT_RIGHT_SIGN_EXTEND};
  const std::vector<B> logical{B::LOGICAL_AND, B::LOGICAL_OR, B::EQUAL, B::NOT_EQUAL};

  std::vector<NamedCase> cases;
  cases.push_back({"subnormal halves", [](Case &c) {
                     const auto x = c.data("x", HALF, {5}, {6e-8, 1e-6, 3e-5, -2e-5, 6.2e-5});
                     c.output("sum", popops::add(c.graph, x, x, c.prog));
                     c.output("half", popops::map(c.graph, popops::expr::Mul(popops::expr::_1,
                                                                             popops::expr::Const(0.5f)), {x}, c.prog));
                   }});
  for (const auto &type : {FLOAT, HALF}) {
    const auto name = std::string(type.toString());
    cases.push_back({"unary " + name, [=](Case &c) { unaryCase(c, type, -3, 3, any_sign); }});
    cases.push_back({"unary positive " + name, [=](Case &c) { unaryCase(c, type, 0.01, 1, positive); }});
    cases.push_back({"binary " + name, [=](Case &c) { binaryCase(c, type, -4, 4, floating); }});
    cases.push_back({"binary positive " + name, [=](Case &c) { binaryCase(c, type, 0.1, 3, positive_binary); }});
  }
  for (const auto &type : {INT, UNSIGNED_INT, SHORT, UNSIGNED_CHAR, LONGLONG}) {
    const auto name = std::string(type.toString());
    const bool is_signed = type == INT || type == SHORT || type == LONGLONG;
    const double low = is_signed ? -100 : 0;
    cases.push_back({"unary " + name, [=](Case &c) { unaryCase(c, type, low, 100, integer); }});
    cases.push_back({"binary " + name, [=](Case &c) { binaryCase(c, type, low, 100, integers); }});
    cases.push_back({"divisions " + name, [=](Case &c) { binaryCase(c, type, 1, 100, divisions); }});
    cases.push_back({"shifts " + name, [=](Case &c) { binaryCase(c, type, 1, 7, shifts); }});
  }
  cases.push_back({"logical", [=](Case &c) {
                     binaryCase(c, BOOL, -1, 1, logical);
                     c.output("LOGICAL_NOT", popops::logicalNot(c.graph, c.input("x", BOOL, {99}), c.prog));
                   }});
  cases.push_back({"broadcast", [](Case &c) {
                     const auto a = c.input("a", FLOAT, {7, 1, 5}), b = c.input("b", FLOAT, {3, 1});
                     const auto s = c.input("s", FLOAT, {}), h = c.input("h", HALF, {5, 1}), g = c.input("g", HALF, {4});
                     c.output("a+b", popops::add(c.graph, a, b, c.prog));
                     c.output("a*s", popops::mul(c.graph, a, s, c.prog));
                     c.output("s-b", popops::sub(c.graph, s, b, c.prog));
                     c.output("h*g", popops::mul(c.graph, h, g, c.prog));
                     c.output("2-a", popops::sub(c.graph, 2.0f, a, c.prog));
                     c.output("a/3", popops::div(c.graph, a, 3.0f, c.prog));
                   }});
  cases.push_back({"long broadcast", [](Case &c) {
                     const auto a = c.input("a", FLOAT, {3, 1, 700}), b = c.input("b", FLOAT, {11, 700});
                     const auto rows = c.input("rows", FLOAT, {2500, 1}), columns = c.input("columns", FLOAT, {1, 3});
                     c.output("a+b", popops::add(c.graph, a, b, c.prog));
                     c.output("outer", popops::mul(c.graph, rows, columns, c.prog));
                   }});
  cases.push_back({"in place", [](Case &c) {
                     const auto a = c.input("a", FLOAT, {50, 40}), b = c.input("b", FLOAT, {50, 40});
                     const auto copy = c.graph.clone(a), view = copy.transpose().reverse(0);
                     c.prog.add(program::Copy(a, copy));
                     popops::mulInPlace(c.graph, copy, b, c.prog);
                     popops::addInPlace(c.graph, copy, 1.0f, c.prog);
                     popops::subInPlace(c.graph, view, b.transpose(), c.prog);
                     popops::addInPlace(c.graph, copy.slice(0, 25), copy.slice(25, 50), c.prog);
                     popops::subInPlace(c.graph, copy, copy[7][3], c.prog);
                     c.output("copy", copy);
                   }});
  cases.push_back({"expressions", [](Case &c) {
                     const auto a = c.input("a", FLOAT, {3000}), b = c.input("b", FLOAT, {3000});
                     const auto h = c.input("h", HALF, {3000}), i = c.input("i", INT, {3000}, -9, 9);
                     const auto out = [&](const char *name, const pe::Expr &e, const std::vector<Tensor> &ts) {
                       c.output(name, popops::map(c.graph, e, ts, c.prog));
                     };
                     out("tanh", pe::Tanh(pe::Add(pe::Square(pe::_1), pe::Const(3))), {a});
                     out("mixed", (pe::_1 + 1) * pe::_2 - 0.5, {a, b});
                     out("select", pe::Select(pe::_1, -pe::_2, pe::_1 > pe::_2 && pe::_2 < 0.5f), {a, b});
                     out("clamp", pe::Clamp(pe::_1, pe::Const(-1.0f), pe::Const(0.5f)), {a});
                     out("half", pe::_1 * 3.0f + pe::ConstHalf(0.25f), {h});
                     out("cast", pe::Cast(pe::_1, FLOAT) + pe::_2, {h, a});
                     out("int", (pe::_1 * 3 + 7) % 5, {i});
                     out("constants", pe::_1 * (pe::Const(2.0f) + pe::Const(1)), {h});
                     out("again", pe::_1 * pe::_1 + pe::_1, {a});
                   }});
  cases.push_back({"several", [](Case &c) {
                     const auto a = c.input("a", FLOAT, {2100}), b = c.input("b", FLOAT, {2100});
                     const auto x = c.graph.clone(a), y = c.graph.clone(b);
                     c.prog.add(program::Copy(a, x));
                     c.prog.add(program::Copy(b, y));
                     popops::mapInPlace(c.graph, std::vector<pe::Any>{pe::_1 + pe::_2, pe::_1 - pe::_2}, {x, y}, c.prog);
                     c.output("x", x);
                     c.output("y", y);
                   }});
  cases.push_back({"casts", [](Case &c) {
                     const auto a = c.data("a", FLOAT, {8}, {-2.75, -0.5, 0, 0.5, 2.5, 3.75, 1e-3, 70000});
                     const auto i = c.data("i", INT, {5}, {-70000, -1, 0, 3, 2049});
                     for (const auto &type : {HALF, INT, UNSIGNED_CHAR, BOOL, LONGLONG})
                       c.output("a to " + std::string(type.toString()), popops::cast(c.graph, a, type, c.prog));
                     for (const auto &type : {FLOAT, HALF, SHORT, BOOL})
                       c.output("i to " + std::string(type.toString()), popops::cast(c.graph, i, type, c.prog));
                     const auto same = c.graph.clone(a);
                     c.prog.add(popops::cast(c.graph, a, same));
                     c.output("same", same);
                   }});
  cases.push_back({"fill", [](Case &c) {
                     const auto a = c.input("a", FLOAT, {6, 5}), h = c.input("h", HALF, {9});
                     const auto i = c.input("i", UNSIGNED_INT, {4}, 0, 9);
                     popops::fill(c.graph, a.slice(1, 3, 1), c.prog, 2.5f);
                     popops::fill(c.graph, h, c.prog, 0.1f);
                     popops::zero(c.graph, i.slice(2, 4), c.prog);
                     c.output("filled", a);
                     c.output("half", h);
                     c.output("zeroed", i);
                   }});
  cases.push_back({"scaled add", [](Case &c) {
                     const auto b = c.input("b", FLOAT, {600}), s = c.input("s", FLOAT, {1});
                     const auto h = c.input("h", HALF, {600});
                     const auto fresh = [&](const char *name, const Type &type) { return c.input(name, type, {600}); };
                     const auto one = fresh("one", FLOAT), two = fresh("two", FLOAT), three = fresh("three", FLOAT);
                     const auto four = fresh("four", HALF), five = fresh("five", FLOAT);
                     const auto copy = [&](const Tensor &t) {
                       const auto result = c.graph.clone(t);
                       c.prog.add(program::Copy(t, result));
                       return result;
                     };
                     const auto x1 = copy(one), x2 = copy(two), x3 = copy(three), x4 = copy(four), x5 = copy(five);
                     const auto x6 = copy(four);
                     popops::scaledAddTo(c.graph, x1, b, 0.25f, c.prog);
                     popops::scaledSubtractFrom(c.graph, x2, b, s, c.prog);
                     popops::scaledAddTo(c.graph, x3, 0.5f, b, 2.0f, c.prog);
                     popops::scaledAddTo(c.graph, x4, h, 3.0f, c.prog);
                     popops::scaledAddTo(c.graph, x5, s, b, s, c.prog, popops::ScaledAddSpecialisation::X_MINUS_AX_PLUS_BY);
                     popops::scaledAddTo(c.graph, x6, b, 3.0f, c.prog);
                     c.output("x1", x1);
                     c.output("x2", x2);
                     c.output("x3", x3);
                     c.output("x4", x4);
                     c.output("x5", x5);
                     c.output("x6", x6);
                   }});
  cases.push_back({"element-wise errors", [](Case &c) {
                     const auto a = c.input("a", FLOAT, {3}), h = c.input("h", HALF, {3}), b = c.input("b", FLOAT, {4});
                     const auto i = c.input("i", INT, {3});
                     c.error("types", [&] { popops::add(c.graph, a, h, c.prog); });
                     c.error("shapes", [&] { popops::add(c.graph, a, b, c.prog); });
                     c.error("constant", [&] { popops::add(c.graph, i, 1.5f, c.prog); });
                     c.error("operation", [&] { popops::exp(c.graph, i, c.prog); });
                     c.error("placeholder", [&] { popops::map(c.graph, pe::_1 + pe::_2, {a}, c.prog); });
                     c.error("output", [&] { popops::eqWithOutput(c.graph, a, a, a, c.prog); });
                   }});
  return cases;
}
