// Adds scaled tensors.
#include <popops/ElementWise.hpp>
#include <popops/ScaledAdd.hpp>
#include <poputil/detail/kernels.hpp>

namespace popops {

namespace {

using poplar::Tensor;

void checkShapes(const Tensor &A, const Tensor &B) {
  if (A.shape() != B.shape())
    poputil::detail::fail("popops::scaledAddTo", "A has the shape " + poputil::detail::describeShape(A.shape()) +
                          " and B " + poputil::detail::describeShape(B.shape()) + "; expected the same",
                          "Broadcast or reshape B");
}

// Adds A = factorOfA * A + sign * scaleB * B; without scaleA the factor is 1. Half is computed in float.
void addScaled(poplar::Graph &graph, const Tensor &A, const Tensor *scaleA, const Tensor &B, const Tensor &scaleB,
               bool subtract, bool minus, poplar::program::Sequence &prog, const poplar::DebugContext &debugContext) {
  using namespace expr;
  checkShapes(A, B);
  const auto type = A.elementType() == poplar::HALF ? poplar::FLOAT : A.elementType();
  const auto in = [&](const Expr &operand) { return Any(expr::Cast(operand, type)); };
  std::vector<Tensor> tensors{A, B, scaleB.reshape({})};
  const auto scaled = Mul(in(_3), in(_2));
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

void scaledAddTo(poplar::Graph &graph, Tensor A, Tensor B, float scaleB, poplar::program::Sequence &prog,
                 const poplar::DebugContext &debugContext, const poplar::OptionFlags &options) {
  scaledAddTo(graph, A, B, scalar(graph, A, scaleB, debugContext), prog, debugContext, options);
}

void scaledAddTo(poplar::Graph &graph, Tensor A, Tensor B, Tensor scaleB, poplar::program::Sequence &prog,
                 const poplar::DebugContext &debugContext, const poplar::OptionFlags &) {
  addScaled(graph, A, nullptr, B, scaleB, false, false, prog, {debugContext, "scaledAdd"});
}

void scaledSubtractFrom(poplar::Graph &graph, Tensor A, Tensor B, float scaleB, poplar::program::Sequence &prog,
                        const poplar::DebugContext &debugContext, const poplar::OptionFlags &options) {
  scaledSubtractFrom(graph, A, B, scalar(graph, A, scaleB, debugContext), prog, debugContext, options);
}

void scaledSubtractFrom(poplar::Graph &graph, Tensor A, Tensor B, Tensor scaleB, poplar::program::Sequence &prog,
                        const poplar::DebugContext &debugContext, const poplar::OptionFlags &) {
  addScaled(graph, A, nullptr, B, scaleB, true, false, prog, {debugContext, "scaledSubtract"});
}

void scaledAddTo(poplar::Graph &graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB,
                 poplar::program::Sequence &prog, const poplar::DebugContext &debugContext,
                 const poplar::OptionFlags &options) {
  scaledAddTo(graph, A, scaleA, B, scaleB, prog, ScaledAddSpecialisation::DEFAULT, debugContext, options);
}

void scaledAddTo(poplar::Graph &graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB,
                 poplar::program::Sequence &prog, const ScaledAddSpecialisation speciality,
                 const poplar::DebugContext &debugContext, const poplar::OptionFlags &) {
  addScaled(graph, A, &scaleA, B, scaleB, false, speciality == ScaledAddSpecialisation::X_MINUS_AX_PLUS_BY, prog,
            {debugContext, "scaledAdd"});
}

void scaledAddTo(poplar::Graph &graph, Tensor A, float scaleA, Tensor B, float scaleB,
                 poplar::program::Sequence &prog, const poplar::DebugContext &debugContext,
                 const poplar::OptionFlags &options) {
  scaledAddTo(graph, A, scaleA, B, scaleB, prog, ScaledAddSpecialisation::DEFAULT, debugContext, options);
}

void scaledAddTo(poplar::Graph &graph, Tensor A, float scaleA, Tensor B, float scaleB,
                 poplar::program::Sequence &prog, const ScaledAddSpecialisation speciality,
                 const poplar::DebugContext &debugContext, const poplar::OptionFlags &options) {
  scaledAddTo(graph, A, scalar(graph, A, scaleA, debugContext), B, scalar(graph, A, scaleB, debugContext), prog,
              speciality, debugContext, options);
}

void scaledSubtractFrom(poplar::Graph &graph, Tensor A, Tensor scaleA, Tensor B, Tensor scaleB,
                        poplar::program::Sequence &prog, const poplar::DebugContext &debugContext,
                        const poplar::OptionFlags &) {
  addScaled(graph, A, &scaleA, B, scaleB, true, false, prog, {debugContext, "scaledSubtract"});
}

void scaledSubtractFrom(poplar::Graph &graph, Tensor A, float scaleA, Tensor B, float scaleB,
                        poplar::program::Sequence &prog, const poplar::DebugContext &debugContext,
                        const poplar::OptionFlags &options) {
  scaledSubtractFrom(graph, A, scalar(graph, A, scaleA, debugContext), B, scalar(graph, A, scaleB, debugContext), prog,
                     debugContext, options);
}

}  // namespace popops
