// Computes non-linear functions, softmax, and their gradients; also log-softmax and spatial softmax.
#include <istream>
#include <ostream>
#include <poplar/detail/compute_sets.hpp>
#include <popnn/LogSoftmax.hpp>
#include <popnn/NonLinearity.hpp>
#include <popnn/NonLinearityDefUtil.hpp>
#include <popnn/SpatialSoftMax.hpp>

#include "popops/float_expressions.hpp"
#include "poputil/library.hpp"

namespace popnn {

using namespace poputil::library;
using popops::detail::inFloat;
using popops::expr::Any;

namespace {

using Type = NonLinearityType;

constexpr const char *NAMES[] = {"sigmoid", "hard_sigmoid", "relu", "tanh", "gelu", "gelu_erf", "swish", "softmax",
                                 "softmax_stable", "softmax_scaled"};
constexpr float HALF_SOFTMAX_SCALE = 16384;
constexpr float GELU_FACTOR = 0.7978845608f, GELU_CUBE = 0.044715f;

bool isSoftmax(Type type) { return type == Type::SOFTMAX || type == Type::SOFTMAX_STABLE || type == Type::SOFTMAX_SCALED; }

void checkFloating(const Tensor &t) {
  if (!poputil::detail::isFloating(t.elementType()))
    fail("popnn::nonLinearity", "the tensor has the type " + poputil::detail::typeName(t.elementType()) +
         "; expected float or half", "Cast it");
}

Any geluInner(const Any &x) {
  using namespace popops::expr;
  return Mul(Mul(Const(GELU_FACTOR), x), Add(Const(1.0f), Mul(Const(GELU_CUBE), Square(x))));
}

// The function of a float.
Any functionOf(Type type, const Any &x) {
  using namespace popops::expr;
  switch (type) {
    case Type::SIGMOID: return Sigmoid(x);
    case Type::HARD_SIGMOID: return Clamp(Add(Mul(Const(0.2f), x), Const(0.5f)), Const(0.0f), Const(1.0f));
    case Type::RELU: return UnaryOp(UnaryOpType::RELU, x);
    case Type::TANH: return Tanh(x);
    case Type::GELU: return Mul(Mul(Const(0.5f), x), Add(Const(1.0f), Tanh(geluInner(x))));
    case Type::GELU_ERF: return GeluErf(x);
    default: return Mul(x, Sigmoid(x));
  }
}

// The function's derivative, from the result y, or the operand x for GELU and SWISH.
Any derivativeOf(Type type, const Any &y) {
  using namespace popops::expr;
  const Const one(1.0f), zero(0.0f);
  switch (type) {
    case Type::SIGMOID: return Mul(y, Sub(one, y));
    case Type::HARD_SIGMOID: return popops::expr::Select(Const(0.2f), zero, And(Gt(y, zero), Lt(y, one)));
    case Type::RELU: return popops::expr::Select(one, zero, Gt(y, zero));
    case Type::TANH: return Sub(one, Square(y));
    case Type::GELU: {
      const auto tanh = Tanh(geluInner(y));
      const auto inner = Mul(Const(GELU_FACTOR), Add(one, Mul(Const(3 * GELU_CUBE), Square(y))));
      return Mul(Const(0.5f), Add(Add(one, tanh), Mul(Mul(y, Sub(one, Square(tanh))), inner)));
    }
    case Type::GELU_ERF: {
      const auto density = Mul(Const(0.3989422804f), Exp(Mul(Const(-0.5f), Square(y))));
      return Add(Mul(Const(0.5f), Add(one, Erf(Mul(y, Const(0.7071067812f))))), Mul(y, density));
    }
    default: {
      const auto sigmoid = Sigmoid(y);
      return Add(sigmoid, Mul(Mul(y, sigmoid), Sub(one, sigmoid)));
    }
  }
}

using Rows = std::vector<std::vector<float>>;
using RowFunction = void (*)(const Rows &in, std::size_t begin, std::size_t size, float scale, float *result);

// Runs `row` on each row of the last dimension, in float.
void addRows(poplar::Graph &graph, const std::vector<Tensor> &inputs, const Tensor &out, float scale, Sequence &prog,
             const poplar::DebugContext &debugContext, RowFunction row) {
  const auto type = out.elementType();
  const auto count = out.numElements(), size = out.rank() == 0 ? 1 : out.dim(out.rank() - 1);
  poputil::detail::addKernelIfAny(
      graph, prog, debugContext, inputs, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &type, const auto &count, const auto &size,
                    const auto &scale, const auto &row, const auto &number) {
        std::vector<std::vector<float>> in;
        for (std::size_t i = 0; i != number; ++i)
          in.push_back(poputil::detail::readFloats(type, arguments.inputs[i], count));
        std::vector<float> result(count);
        poplar::detail::parallelFor(count / size, std::max<std::size_t>(4096 / size, 1),
                                    [&](std::size_t begin, std::size_t end) {
                                      for (; begin != end; ++begin) row(in, begin * size, size, scale, result.data());
                                    });
        poputil::detail::writeFloats(type, result.data(), arguments.outputs[0], count);
      }, type, count, size, scale, row, inputs.size()));
}

void addSoftmax(poplar::Graph &graph, const Tensor &t, const Tensor &out, float scale, Sequence &prog,
                const poplar::DebugContext &debugContext) {
  addRows(graph, {t}, out, scale, prog, {debugContext, "softmax"},
          [](const Rows &in, std::size_t begin, std::size_t size, float scale, float *result) {
            const float *x = in[0].data() + begin;
            const float largest = *std::max_element(x, x + size);
            double sum = 0;
            for (std::size_t i = 0; i != size; ++i) sum += result[begin + i] = std::exp(x[i] - largest);
            const auto factor = static_cast<float>(scale / sum);
            for (std::size_t i = 0; i != size; ++i) result[begin + i] *= factor;
          });
}

void addLogSoftmax(poplar::Graph &graph, const Tensor &t, const Tensor &out, Sequence &prog,
                   const poplar::DebugContext &debugContext) {
  addRows(graph, {t}, out, 1, prog, {debugContext, "logSoftmax"},
          [](const Rows &in, std::size_t begin, std::size_t size, float, float *result) {
            const float *x = in[0].data() + begin;
            const float largest = *std::max_element(x, x + size);
            double sum = 0;
            for (std::size_t i = 0; i != size; ++i) sum += std::exp(x[i] - largest);
            const auto log = static_cast<float>(std::log(sum));
            for (std::size_t i = 0; i != size; ++i) result[begin + i] = x[i] - largest - log;
          });
}

void apply(poplar::Graph &graph, Type type, const Tensor &t, const Tensor &out, float scale, Sequence &prog,
           const poplar::DebugContext &debugContext) {
  checkFloating(t);
  if (isSoftmax(type)) return addSoftmax(graph, t, out, scale, prog, debugContext);
  const popops::expr::Cast result(functionOf(type, inFloat(popops::expr::_1)), t.elementType());
  popops::mapWithOutput(graph, result, {t}, out, prog, {debugContext, asString(type)});
}

void requireScaling(Type type) {
  if (type == Type::SOFTMAX_SCALED)
    fail("popnn::nonLinearity", "SOFTMAX_SCALED has no variable for its factor",
         "Call the form with nonLinearityScaling");
}

float scaleOf(Type type, const Tensor &t) {
  return type == Type::SOFTMAX_SCALED && t.elementType() == poplar::HALF ? HALF_SOFTMAX_SCALE : 1.0f;
}

}  // namespace

const char *asString(const NonLinearityType &type) { return NAMES[static_cast<unsigned>(type)]; }

std::ostream &operator<<(std::ostream &os, const NonLinearityType &type) { return os << asString(type); }

std::istream &operator>>(std::istream &in, NonLinearityType &type) {
  std::string token;
  in >> token;
  const auto *found = std::find(std::begin(NAMES), std::end(NAMES), token);
  if (found == std::end(NAMES))
    fail("Reading a non-linearity", "there is none named '" + token + "'", "Write a name such as relu");
  type = static_cast<NonLinearityType>(found - std::begin(NAMES));
  return in;
}

Tensor nonLinearity(poplar::Graph &graph, Type nonLinearityType, Tensor t, Sequence &prog,
                    const poplar::DebugContext &debugContext) {
  requireScaling(nonLinearityType);
  const auto out = graph.clone(t, {debugContext, "nonLinearity"});
  apply(graph, nonLinearityType, t, out, 1, prog, debugContext);
  return out;
}

Tensor nonLinearity(poplar::Graph &graph, Type nonLinearityType, Tensor t, float &nonLinearityScaling, Sequence &prog,
                    const poplar::DebugContext &debugContext) {
  nonLinearityScaling = scaleOf(nonLinearityType, t);
  const auto out = graph.clone(t, {debugContext, "nonLinearity"});
  apply(graph, nonLinearityType, t, out, nonLinearityScaling, prog, debugContext);
  return out;
}

void nonLinearityInPlace(poplar::Graph &graph, Type nonLinearityType, Tensor t, Sequence &prog,
                         const poplar::DebugContext &debugContext) {
  requireScaling(nonLinearityType);
  apply(graph, nonLinearityType, t, t, 1, prog, debugContext);
}

void nonLinearityInPlace(poplar::Graph &graph, Type nonLinearityType, Tensor t, float &nonLinearityScaling,
                         Sequence &prog, const poplar::DebugContext &debugContext) {
  nonLinearityScaling = scaleOf(nonLinearityType, t);
  apply(graph, nonLinearityType, t, t, nonLinearityScaling, prog, debugContext);
}

Tensor nonLinearityInputGradient(poplar::Graph &graph, Type nonLinearityType, Tensor act, Tensor outGradient,
                                 Sequence &prog, const poplar::DebugContext &debugContext) {
  checkFloating(act);
  if (!isSoftmax(nonLinearityType)) {
    using namespace popops::expr;
    return popops::detail::mapInFloat(graph, Mul(derivativeOf(nonLinearityType, inFloat(_2)), inFloat(_1)),
                                      {outGradient, act}, prog, {debugContext, "nonLinearityGradient"});
  }
  requireScaling(nonLinearityType);
  const auto out = graph.clone(outGradient, {debugContext, "nonLinearityGradient"});
  addRows(graph, {act, outGradient}, out, 1, prog, {debugContext, "softmaxGradient"},
          [](const Rows &in, std::size_t begin, std::size_t size, float, float *result) {
            const float *y = in[0].data() + begin, *gradient = in[1].data() + begin;
            double along = 0;
            for (std::size_t i = 0; i != size; ++i) along += double(y[i]) * gradient[i];
            for (std::size_t i = 0; i != size; ++i)
              result[begin + i] = static_cast<float>(y[i] * (gradient[i] - along));
          });
  return out;
}

void nonLinearityInPlace(poplar::Graph &graph, Type nonLinearityType, Tensor t, poplar::ComputeSet &cs,
                         const poplar::DebugContext &debugContext) {
  Sequence steps;
  nonLinearityInPlace(graph, nonLinearityType, t, steps, debugContext);
  poplar::detail::addToComputeSet(graph, cs, steps);
}

void nonLinearityInPlace(poplar::Graph &graph, Type nonLinearityType, Tensor t, float &nonLinearityScaling,
                         poplar::ComputeSet &cs, const poplar::DebugContext &debugContext) {
  Sequence steps;
  nonLinearityInPlace(graph, nonLinearityType, t, nonLinearityScaling, steps, debugContext);
  poplar::detail::addToComputeSet(graph, cs, steps);
}

Tensor nonLinearityInputGradient(poplar::Graph &graph, Type nonLinearityType, Tensor act, Tensor outGradient,
                                 poplar::ComputeSet &cs, const poplar::DebugContext &debugContext) {
  Sequence steps;
  const auto gradient = nonLinearityInputGradient(graph, nonLinearityType, act, outGradient, steps, debugContext);
  poplar::detail::addToComputeSet(graph, cs, steps);
  return gradient;
}

Tensor logSoftmax(poplar::Graph &graph, Tensor t, Sequence &prog, const poplar::DebugContext &debugContext) {
  checkFloating(t);
  const auto out = graph.clone(t, {debugContext, "logSoftmax"});
  addLogSoftmax(graph, t, out, prog, debugContext);
  return out;
}

void logSoftmaxInPlace(poplar::Graph &graph, Tensor t, Sequence &prog, const poplar::DebugContext &debugContext) {
  checkFloating(t);
  addLogSoftmax(graph, t, t, prog, debugContext);
}

std::pair<Tensor, Tensor> spatialSoftMax2D(poplar::Graph &graph, Sequence &prog, const Tensor &fields,
                                           float temperature, bool disableSoftmax,
                                           const poplar::DebugContext &debugContext) {
  if (fields.rank() != 3)
    fail("popnn::spatialSoftMax2D", "the fields have the shape " + poputil::detail::describeShape(fields.shape()),
         "Pass fields of the shape {F, H, W}");
  checkFloating(fields);
  const auto type = fields.elementType();
  const auto factor = graph.addVariable(type, {}, {debugContext, "temperature"});
  graph.setTileMapping(factor, 0);
  graph.setInitialValue(factor, temperature);
  const auto count = fields.dim(0), height = fields.dim(1), width = fields.dim(2);
  auto probabilities = fields.reshape({count, height * width});
  if (!disableSoftmax) {
    const auto scaled = popops::div(graph, probabilities, factor, prog, debugContext);
    probabilities = nonLinearity(graph, Type::SOFTMAX_STABLE, scaled, prog, debugContext);
  }
  const auto out = poputil::detail::createLinear(graph, type, {count, 2}, {debugContext, "spatialSoftMax"});
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "spatialSoftMax"}, {probabilities}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &type, const auto &count, const auto &height,
                    const auto &width) {
        const auto p = poputil::detail::readFloats(type, arguments.inputs[0], count * height * width);
        std::vector<float> result(2 * count);
        const auto coordinate = [](std::size_t i, std::size_t size) {
          return size == 1 ? -1.0 : 2.0 * i / (size - 1) - 1;
        };
        for (std::size_t field = 0; field != count; ++field) {
          double y = 0, x = 0;
          for (std::size_t i = 0; i != height * width; ++i) {
            y += p[field * height * width + i] * coordinate(i / width, height);
            x += p[field * height * width + i] * coordinate(i % width, width);
          }
          result[2 * field] = static_cast<float>(y);
          result[2 * field + 1] = static_cast<float>(x);
        }
        poputil::detail::writeFloats(type, result.data(), arguments.outputs[0], result.size());
      }, type, count, height, width));
  return {out, factor};
}

}  // namespace popnn
