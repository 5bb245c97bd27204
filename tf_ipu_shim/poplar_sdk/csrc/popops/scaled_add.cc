// Adds a scaled tensor to another, or subtracts it; both may be scaled.
#include <popops/ElementWise.hpp>
#include <popops/ScaledAdd.hpp>

#include "poputil/library.hpp"

namespace popops {

using namespace poputil::library;

namespace {

void checkShapes(const Tensor &A, const Tensor &B) {
  if (A.shape() != B.shape())
    fail("popops::scaledAddTo", "A has the shape " + poputil::detail::describeShape(A.shape()) + " and B " +
         poputil::detail::describeShape(B.shape()) + "; expected the same", "Broadcast or reshape B");
}

// Adds A = factorOfA * A + sign * scaleB * B; without scaleA the factor is 1. B becomes A's type first. Half is
// computed in float.
void addScaled(poplar::Graph &graph, const Tensor &A, const Tensor *scaleA, const Tensor &B, const Tensor &scaleB,
               bool subtract, bool minus, Sequence &prog, const poplar::DebugContext &debugContext) {
  using namespace expr;
  checkShapes(A, B);
  const auto type = A.elementType() == poplar::HALF ? poplar::FLOAT : A.elementType();
  const auto in = [&](const Expr &operand) { return Any(expr::Cast(operand, type)); };
  std::vector<Tensor> tensors{A, B, scaleB.reshape({})};
  const Any added = B.elementType() == A.elementType() ? Any(_2) : Any(expr::Cast(_2, A.elementType()));
  const auto scaled = Mul(in(_3), in(added));
  Any first = in(_1);
  if (scaleA != nullptr) {
    tensors.push_back(scaleA->reshape({}));
    const auto product = Mul(in(_4), in(_1));
    first = minus ? Any(Sub(in(_1), product)) : Any(product);
  }
  const Any result = subtract ? Any(Sub(first, scaled)) : Any(Add(first, scaled));
  mapInPlace(graph, expr::Cast(result, A.elementType()), tensors, prog, debugContext);
}

Tensor scalar(poplar::Graph &graph, const Tensor &A, float value, const poplar::DebugContext &debugContext) {
  const auto type = poputil::detail::isFloating(A.elementType()) ? poplar::FLOAT : A.elementType();
  return poputil::detail::constantScalar(graph, type, value, debugContext);
}

}  // namespace

using Speciality = ScaledAddSpecialisation;

// A function with a scale of B: as a tensor, and as a number.
#define WITH_SCALE_OF_B(function, subtract)                                                                        \
  void function(poplar::Graph &graph, Tensor A, Tensor B, Tensor scaleB, Sequence &prog,                           \
                const poplar::DebugContext &debugContext, const OptionFlags &options) {                            \
    checkOptions("popops::" #function, options, scaled_add_options);                                            \
    addScaled(graph, A, nullptr, B, scaleB, subtract, false, prog, {debugContext, #function});                     \
  }                                                                                                                \
  void function(poplar::Graph &graph, Tensor A, Tensor B, float scaleB, Sequence &prog,                            \
                const poplar::DebugContext &debugContext, const OptionFlags &options) {                            \
    function(graph, A, B, scalar(graph, A, scaleB, debugContext), prog, debugContext, options);                    \
  }

// A function with a scale of A, too.
#define WITH_BOTH_SCALES(function, subtract)                                                                       \
  void function(poplar::Graph &graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB, Sequence &prog,            \
                const poplar::DebugContext &debugContext, const OptionFlags &options) {                            \
    checkOptions("popops::" #function, options, scaled_add_options);                                            \
    addScaled(graph, A, &scaleA, B, scaleB, subtract, false, prog, {debugContext, #function});                     \
  }                                                                                                                \
  void function(poplar::Graph &graph, Tensor A, float scaleA, Tensor B, float scaleB, Sequence &prog,              \
                const poplar::DebugContext &debugContext, const OptionFlags &options) {                            \
    function(graph, A, scalar(graph, A, scaleA, debugContext), B, scalar(graph, A, scaleB, debugContext), prog,    \
             debugContext, options);                                                                               \
  }

WITH_SCALE_OF_B(scaledAddTo, false)
WITH_SCALE_OF_B(scaledSubtractFrom, true)
WITH_BOTH_SCALES(scaledAddTo, false)
WITH_BOTH_SCALES(scaledSubtractFrom, true)
#undef WITH_SCALE_OF_B
#undef WITH_BOTH_SCALES

void scaledAddTo(poplar::Graph &graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB, Sequence &prog,
                 const Speciality speciality, const poplar::DebugContext &debugContext, const OptionFlags &options) {
  checkOptions("popops::scaledAddTo", options, scaled_add_options);
  addScaled(graph, A, &scaleA, B, scaleB, false, speciality == Speciality::X_MINUS_AX_PLUS_BY, prog,
            {debugContext, "scaledAddTo"});
}

void scaledAddTo(poplar::Graph &graph, Tensor A, float scaleA, Tensor B, float scaleB, Sequence &prog,
                 const Speciality speciality, const poplar::DebugContext &debugContext, const OptionFlags &options) {
  scaledAddTo(graph, A, scalar(graph, A, scaleA, debugContext), B, scalar(graph, A, scaleB, debugContext), prog,
              speciality, debugContext, options);
}

}  // namespace popops
