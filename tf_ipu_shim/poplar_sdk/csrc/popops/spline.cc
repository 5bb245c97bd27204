// Evaluates B-splines at coordinates, and weights features by them.
#include <popops/SplineBasis.hpp>
#include <popops/SplineWeighting.hpp>

#include "poputil/library.hpp"

namespace popops {

using namespace poputil::library;

namespace {

using poputil::detail::describeShape;
using poputil::detail::readFloats;
using poputil::detail::typeName;

// A B-spline of a degree from 1 to 3 that begins `part` intervals before the one that `at` is a fraction of.
float splineAt(std::size_t degree, std::size_t part, float at) {
  if (degree == 1) return part == 0 ? 1 - at : at;
  if (degree == 2) return part == 0 ? (1 - at) * (1 - at) / 2 : part == 1 ? (0.5f + at - at * at) : at * at / 2;
  const float from_end = 1 - at;
  if (part == 0) return from_end * from_end * from_end / 6;
  if (part == 1) return (3 * at * at * at - 6 * at * at + 4) / 6;
  if (part == 2) return (3 * from_end * from_end * from_end - 6 * from_end * from_end + 4) / 6;
  return at * at * at / 6;
}

void runBasis(const KernelArguments &arguments, const poplar::Type &type, const std::vector<std::size_t> &sizes) {
  const std::size_t edges = sizes[0], dims = sizes[1], degree = sizes[2], splines = sizes[3];
  const auto pseudo = readFloats(type, arguments.inputs[0], edges * dims);
  const auto *kernel = static_cast<const std::int32_t *>(arguments.inputs[1]);
  const auto *open = static_cast<const unsigned char *>(arguments.inputs[2]);
  for (std::size_t dim = 0; dim != dims; ++dim)
    if (kernel[dim] < 1)
      fail("popops::splineBasis", "the kernel size of dimension " + std::to_string(dim) + " is " +
           std::to_string(kernel[dim]), "Pass sizes of at least 1");
  std::vector<float> products(edges * splines);
  auto *places = static_cast<std::int32_t *>(arguments.outputs[1]);
  for (std::size_t edge = 0; edge != edges; ++edge) {
    for (std::size_t spline = 0; spline != splines; ++spline) {
      float product = 1;
      std::int64_t place = 0, stride = 1;
      std::size_t rest = spline;
      for (std::size_t dim = 0; dim != dims; ++dim, rest /= degree + 1) {
        const std::size_t part = rest % (degree + 1);
        const auto intervals = static_cast<float>(kernel[dim]) - (open[dim] != 0 ? static_cast<float>(degree) : 0.0f);
        const float scaled = pseudo[edge * dims + dim] * intervals, whole = std::floor(scaled);
        const auto first = std::isfinite(whole) ? static_cast<std::int64_t>(whole) : 0;
        place += (((first + static_cast<std::int64_t>(part)) % kernel[dim]) + kernel[dim]) % kernel[dim] * stride;
        stride *= kernel[dim];
        product *= splineAt(degree, part, scaled - whole);
      }
      products[edge * splines + spline] = product;
      places[edge * splines + spline] = static_cast<std::int32_t>(place);
    }
  }
  poputil::detail::writeFloats(type, products.data(), arguments.outputs[0], products.size());
}

void runWeighting(const KernelArguments &arguments, const poplar::Type &type, const std::vector<std::size_t> &sizes) {
  const std::size_t edges = sizes[0], in = sizes[1], out = sizes[2], splines = sizes[3], places = sizes[4];
  const auto input = readFloats(type, arguments.inputs[0], edges * in);
  const auto weight = readFloats(type, arguments.inputs[1], places * in * out);
  const auto basis = readFloats(type, arguments.inputs[2], edges * splines);
  const auto *index = static_cast<const std::int32_t *>(arguments.inputs[3]);
  std::vector<float> result(edges * out);
  for (std::size_t edge = 0; edge != edges; ++edge) {
    for (std::size_t spline = 0; spline != splines; ++spline) {
      const std::int32_t place = index[edge * splines + spline];
      if (place < 0 || static_cast<std::size_t>(place) >= places)
        fail("popops::splineWeighting", "a weight index is " + std::to_string(place) + " for " +
             std::to_string(places) + " weights", "Pass indices from 0");
      for (std::size_t i = 0; i != in; ++i) {
        const float factor = basis[edge * splines + spline] * input[edge * in + i];
        const float *row = &weight[(static_cast<std::size_t>(place) * in + i) * out];
        for (std::size_t o = 0; o != out; ++o) result[edge * out + o] += factor * row[o];
      }
    }
  }
  poputil::detail::writeFloats(type, result.data(), arguments.outputs[0], result.size());
}

void checkFloating(const char *function, const char *what, const Tensor &tensor) {
  if (!poputil::detail::isFloating(tensor.elementType()))
    fail(function, std::string(what) + " has the type " + typeName(tensor.elementType()) + "; expected float or half",
         "Cast it");
}

void check(const char *function, const char *what, const Tensor &tensor, const poplar::Type &type, const Shape &shape) {
  if (tensor.elementType() != type || tensor.shape() != shape)
    fail(function, std::string(what) + " is " + typeName(tensor.elementType()) + " of the shape " +
         describeShape(tensor.shape()) + "; expected " + typeName(type) + " of the shape " + describeShape(shape),
         "Cast or reshape it");
}

void checkRank(const char *function, const char *what, const Tensor &tensor, unsigned rank) {
  if (tensor.rank() != rank)
    fail(function, std::string(what) + " has the shape " + describeShape(tensor.shape()) + "; expected rank " +
         std::to_string(rank), "Reshape it");
}

}  // namespace

void splineBasis(poplar::Graph &graph, const Tensor &pseudo, const Tensor &kernelSize, const Tensor &isOpenSpline,
                 const Tensor &basis, const Tensor &weightIndex, unsigned degree, Sequence &prog,
                 const poplar::DebugContext &debugContext) {
  const char *function = "popops::splineBasis";
  checkRank(function, "pseudo", pseudo, 2);
  checkFloating(function, "pseudo", pseudo);
  if (degree < 1 || degree > 3)
    fail(function, "the degree is " + std::to_string(degree) + "; expected 1, 2 or 3", "Pass another degree");
  const std::size_t edges = pseudo.dim(0), dims = pseudo.dim(1);
  check(function, "kernelSize", kernelSize, poplar::INT, {dims});
  check(function, "isOpenSpline", isOpenSpline, poplar::UNSIGNED_CHAR, {dims});
  if (dims > 8) fail(function, "pseudo has " + std::to_string(dims) + " dimensions; expected at most 8", "Pass fewer");
  std::size_t splines = 1;
  for (std::size_t dim = 0; dim != dims; ++dim) splines *= degree + 1;
  check(function, "basis", basis, pseudo.elementType(), {edges, splines});
  check(function, "weightIndex", weightIndex, poplar::INT, {edges, splines});
  poputil::detail::addKernelIfAny(graph, prog, {debugContext, "splineBasis"}, {pseudo, kernelSize, isOpenSpline},
                                  {basis, weightIndex},
                                  Kernel::of(runBasis, pseudo.elementType(), Shape{edges, dims, degree, splines}));
}

Tensor splineWeighting(poplar::Graph &graph, const Tensor &input, const Tensor &weight, const Tensor &basis,
                       const Tensor &weightIndex, Sequence &prog, const poplar::DebugContext &debugContext) {
  const char *function = "popops::splineWeighting";
  checkRank(function, "input", input, 2);
  checkFloating(function, "input", input);
  checkRank(function, "weight", weight, 3);
  checkRank(function, "basis", basis, 2);
  const auto type = input.elementType();
  const std::size_t edges = input.dim(0), in = input.dim(1), places = weight.dim(0), out = weight.dim(2);
  check(function, "weight", weight, type, {places, in, out});
  check(function, "basis", basis, type, {edges, basis.dim(1)});
  check(function, "weightIndex", weightIndex, poplar::INT, {edges, basis.dim(1)});
  const auto result = poputil::detail::createLinearWithWhole(graph, type, {edges, out}, 1, {debugContext, "splineWeighting"});
  poputil::detail::addKernelIfAny(graph, prog, {debugContext, "splineWeighting"}, {input, weight, basis, weightIndex},
                                  {result},
                                  Kernel::of(runWeighting, type, Shape{edges, in, out, basis.dim(1), places}));
  return result;
}

}  // namespace popops
