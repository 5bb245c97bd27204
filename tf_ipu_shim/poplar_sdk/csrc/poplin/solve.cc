// Coordinate grids, triangular solves and Cholesky factorisation.
#include <poplin/Cholesky.hpp>
#include <poplin/MeshGrid.hpp>
#include <poplin/TriangularSolve.hpp>

#include "poputil/library.hpp"

namespace poplin {

using namespace poputil::library;

namespace {

// The side of square matrices of floating point in the last two dimensions.
std::size_t sideOf(const std::string &function, const Tensor &a) {
  const auto shape = a.shape();
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2] || !poputil::detail::isFloating(a.elementType()))
    fail(function, "the tensor has the shape " + poputil::detail::describeShape(shape) + " and the type " +
         poputil::detail::typeName(a.elementType()), "Pass square matrices of float or half");
  return shape.back();
}

// Whether an element lies in the triangle.
bool inTriangle(std::size_t row, std::size_t column, bool lower) { return lower ? column <= row : column >= row; }

// Solves one system in place: x holds `columns` right-hand sides of `side` elements.
void solveOne(const float *a, double *x, std::size_t side, std::size_t columns, bool lower, bool unitDiagonal,
              bool transposed) {
  const auto element = [&](std::size_t row, std::size_t column) {
    return static_cast<double>(transposed ? a[column * side + row] : a[row * side + column]);
  };
  const bool forward = lower != transposed;
  for (std::size_t step = 0; step != side; ++step) {
    const auto row = forward ? step : side - 1 - step;
    for (std::size_t column = 0; column != columns; ++column) {
      double value = x[row * columns + column];
      for (std::size_t k = 0; k != step; ++k) {
        const auto done = forward ? k : side - 1 - k;
        value -= element(row, done) * x[done * columns + column];
      }
      x[row * columns + column] = unitDiagonal ? value : value / element(row, row);
    }
  }
}

void factoriseOne(float *a, std::size_t side, bool lower) {
  std::vector<double> factor(side * side);
  const auto input = [&](std::size_t row, std::size_t column) { return lower ? a[row * side + column] : a[column * side + row]; };
  for (std::size_t column = 0; column != side; ++column) {
    for (std::size_t row = column; row != side; ++row) {
      double value = input(row, column);
      for (std::size_t k = 0; k != column; ++k) value -= factor[row * side + k] * factor[column * side + k];
      factor[row * side + column] = row == column ? std::sqrt(value) : value / factor[column * side + column];
    }
  }
  for (std::size_t row = 0; row != side; ++row)
    for (std::size_t column = 0; column != side; ++column)
      a[row * side + column] = static_cast<float>(lower ? factor[row * side + column] : factor[column * side + row]);
}

}  // namespace

Tensor linspace(poplar::Graph &graph, const poplar::Type &type, float left, float right, size_t count,
                const poplar::DebugContext &debugContext) {
  if (!poputil::detail::isFloating(type)) fail("poplin::linspace", "the type is neither float nor half", "Pass FLOAT or HALF");
  std::vector<float> values(count);
  for (std::size_t i = 0; i != count; ++i)
    values[i] = i + 1 == count ? (count == 1 ? left : right)
                               : static_cast<float>(left + i * (double(right) - left) / (count - 1));
  const auto constant = graph.addConstant(type, {count}, poplar::ArrayRef<float>(values), debugContext);
  poputil::mapTensorLinearly(graph, constant);
  return constant;
}

std::vector<Tensor> meshgrid2d(poplar::Graph &, Tensor x, Tensor y) {
  if (x.rank() != 1 || y.rank() != 1) fail("poplin::meshgrid2d", "x or y is no vector", "Flatten them");
  const auto columns = x.numElements(), rows = y.numElements();
  return {x.expand({0}).broadcast(rows, 0), y.expand({1}).broadcast(columns, 1)};
}

Tensor createTriangularSolveInputLHS(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &,
                                     const Shape &aShape, const Shape &, bool,
                                     const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *) {
  checkOptions("poplin::createTriangularSolveInputLHS", options, solver_options);
  return poputil::detail::createLinear(graph, inputType, aShape, debugContext);
}

Tensor createTriangularSolveInputRHS(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &,
                                     const Shape &, const Shape &bShape, bool,
                                     const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *) {
  checkOptions("poplin::createTriangularSolveInputRHS", options, solver_options);
  return poputil::detail::createLinear(graph, inputType, bShape, debugContext);
}

Tensor triangularMask(poplar::Graph &graph, const Tensor &a, bool lower, bool unitDiagonal,
                      Sequence &prog, const poplar::DebugContext &debugContext) {
  const auto side = sideOf("poplin::triangularMask", a);
  const auto out = poputil::detail::createLinear(graph, a.elementType(), a.shape(), {debugContext, "triangularMask"});
  const auto type = a.elementType();
  const auto count = a.numElements();
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "triangularMask"}, {a}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &type, const auto &count, const auto &side,
                    const auto &lower, const auto &unitDiagonal) {
        auto values = poputil::detail::readFloats(type, arguments.inputs[0], count);
        for (std::size_t i = 0; i != count; ++i) {
          const auto row = i / side % side, column = i % side;
          if (row == column && unitDiagonal) values[i] = 1;
          else if (!inTriangle(row, column, lower)) values[i] = 0;
        }
        poputil::detail::writeFloats(type, values.data(), arguments.outputs[0], count);
      }, type, count, side, lower, unitDiagonal),
      poputil::detail::elementwiseCost());
  return out;
}

Tensor triangularSolve(poplar::Graph &graph, const Tensor &a, const Tensor &b, bool leftSide, bool lower,
                       bool unitDiagonal, Sequence &prog, const poplar::DebugContext &debugContext,
                       const OptionFlags &options, PlanningCache *) {
  checkOptions("poplin::triangularSolve", options, solver_options);
  const auto side = sideOf("poplin::triangularSolve", a);
  const auto matrices = a.numElements() / std::max<std::size_t>(side * side, 1);
  // X A = B is A^T X^T = B^T.
  const auto order = [&](const Tensor &tensor) {
    return leftSide ? tensor : tensor.dimShufflePartial({tensor.rank() - 1, tensor.rank() - 2},
                                                        {tensor.rank() - 2, tensor.rank() - 1});
  };
  if (b.rank() != a.rank() || order(b).dim(b.rank() - 2) != side || b.elementType() != a.elementType())
    fail("poplin::triangularSolve", "A has the shape " + poputil::detail::describeShape(a.shape()) + " and B " +
         poputil::detail::describeShape(b.shape()), "Pass matrices that fit, of the same type");
  const auto out = poputil::detail::createLinear(graph, b.elementType(), b.shape(), {debugContext, "triangularSolve"});
  const auto type = a.elementType();
  const auto columns = b.numElements() / std::max<std::size_t>(matrices * side, 1);
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "triangularSolve"}, {a, order(b)}, {order(out)},
      Kernel::of([](const KernelArguments &arguments, const auto &type, const auto &matrices, const auto &side,
                    const auto &columns, const auto &leftSide, const auto &lower, const auto &unitDiagonal) {
        const auto left = poputil::detail::readFloats(type, arguments.inputs[0], matrices * side * side);
        auto result = poputil::detail::readFloats(type, arguments.inputs[1], matrices * side * columns);
        poplar::detail::parallelFor(matrices, 1, [&](std::size_t begin, std::size_t end) {
          for (; begin != end; ++begin) {
            float *part = result.data() + begin * side * columns;
            std::vector<double> x(part, part + side * columns);
            solveOne(left.data() + begin * side * side, x.data(), side, columns, lower, unitDiagonal, !leftSide);
            std::copy(x.begin(), x.end(), part);
          }
        });
        poputil::detail::writeFloats(type, result.data(), arguments.outputs[0], result.size());
      }, type, matrices, side, columns, leftSide, lower, unitDiagonal));
  return out;
}

Tensor createCholeskyInput(poplar::Graph &graph, const poplar::Type &type, const Shape &shape, bool,
                           const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *) {
  checkOptions("poplin::createCholeskyInput", options, solver_options);
  return poputil::detail::createLinear(graph, type, shape, debugContext);
}

Tensor cholesky(poplar::Graph &graph, const Tensor &a, bool lower, Sequence &prog,
                const poplar::DebugContext &debugContext, OptionFlags options, PlanningCache *cache) {
  const auto out = poputil::detail::createLinear(graph, a.elementType(), a.shape(), {debugContext, "cholesky"});
  prog.add(poplar::program::Copy(a, out, false, debugContext));
  choleskyInPlace(graph, out, lower, prog, debugContext, std::move(options), cache);
  return out;
}

void choleskyInPlace(poplar::Graph &graph, const Tensor &a, bool lower, Sequence &prog,
                     const poplar::DebugContext &debugContext, OptionFlags options, PlanningCache *) {
  checkOptions("poplin::choleskyInPlace", options, solver_options);
  const auto side = sideOf("poplin::cholesky", a);
  const auto type = a.elementType();
  const auto count = a.numElements();
  poputil::detail::addKernelIfAny(graph, prog, {debugContext, "cholesky"}, {}, {a},
                                  Kernel::of([](const KernelArguments &arguments, const auto &type, const auto &count,
                                                const auto &side, const auto &lower) {
                                    auto values = poputil::detail::readFloats(type, arguments.outputs[0], count);
                                    for (std::size_t i = 0; i != count; i += side * side)
                                      factoriseOne(values.data() + i, side, lower);
                                    poputil::detail::writeFloats(type, values.data(), arguments.outputs[0], count);
                                  }, type, count, side, lower));
}

}  // namespace poplin
