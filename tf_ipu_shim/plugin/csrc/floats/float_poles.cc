// Counts the elements whose operands make an op divide by zero, by a test for each type of op.
#include "floats/float_poles.h"

#include <cmath>
#include <map>
#include <string>

#include "floats/broadcast_pairs.h"
#include "floats/float_values.h"

namespace tf_ipu_shim {
namespace {

using namespace tensorflow;  // NOLINT: this file reads TensorFlow's tensors

using OnePole = bool (*)(double);
using TwoPole = bool (*)(double, double);

bool IsFiniteNonZero(double x) { return std::isfinite(x) && x != 0; }
bool DividesByZero(double x, double y) { return y == 0 && IsFiniteNonZero(x); }

const std::map<std::string, OnePole>& UnaryOps() {
  const OnePole zero = [](double x) { return x == 0; };
  const OnePole one = [](double x) { return x == 1 || x == -1; };
  const OnePole whole = [](double x) { return x <= 0 && std::isfinite(x) && std::floor(x) == x; };
  static const auto* const ops = new std::map<std::string, OnePole>{
      {"Inv", zero},   {"Reciprocal", zero}, {"Rsqrt", zero}, {"Log", zero}, {"Log1p", [](double x) { return x == -1; }},
      {"Atanh", one},  {"Erfinv", one},      {"Lgamma", whole}};
  return *ops;
}

const std::map<std::string, TwoPole>& BinaryOps() {
  static const auto* const ops = new std::map<std::string, TwoPole>{
      {"Div", DividesByZero},
      {"RealDiv", DividesByZero},
      {"FloorDiv", DividesByZero},
      {"TruncateDiv", DividesByZero},
      {"Xdivy", DividesByZero},
      // x log y
      {"Xlogy", DividesByZero},
      {"Xlog1py", [](double x, double y) { return y == -1 && IsFiniteNonZero(x); }},
      {"Pow", [](double x, double y) { return x == 0 && y < 0 && std::isfinite(y); }},
      // of a square root, from its result and the gradient of that
      {"SqrtGrad", [](double y, double dy) { return DividesByZero(dy, y); }}};
  return *ops;
}

int64_t CountPairs(const Tensor& x, const Tensor& y, TwoPole is_pole) {
  int64_t poles = 0;
  ForEachBroadcastPair(x.shape(), y.shape(), [&](int64_t, int64_t x_index, int64_t y_index) {
    poles += is_pole(ValueAt(x, x_index), ValueAt(y, y_index));
  });
  return poles;
}

}  // namespace

int64_t CountPoles(OpKernelContext* context) {
  const std::string& op = context->op_kernel().def().op();
  const auto one = UnaryOps().find(op);
  if (one != UnaryOps().end() && context->num_inputs() == 1 && IsFloat(context->input_dtype(0))) {
    const Tensor& x = context->input(0);
    int64_t poles = 0;
    for (int64_t i = 0; i < x.NumElements(); ++i) poles += one->second(ValueAt(x, i));
    return poles;
  }
  const auto two = BinaryOps().find(op);
  if (two != BinaryOps().end() && context->num_inputs() == 2 && IsFloat(context->input_dtype(0)) &&
      IsFloat(context->input_dtype(1))) {
    return CountPairs(context->input(0), context->input(1), two->second);
  }
  return 0;
}

}  // namespace tf_ipu_shim
