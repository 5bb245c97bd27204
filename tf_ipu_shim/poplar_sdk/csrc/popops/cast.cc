// Converts tensors between element types.
#include <poplar/detail/compute_sets.hpp>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <poputil/detail/kernels.hpp>

namespace popops {

poplar::Tensor cast(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Type &dstType,
                    poplar::program::Sequence &prog, const poplar::DebugContext &debugContext) {
  const auto dst = graph.clone(dstType, src, {debugContext, "Cast/Out"});
  castWithOutput(graph, src, dst, prog, debugContext);
  return dst;
}

void castWithOutput(poplar::Graph &graph, const poplar::Tensor &src, const poplar::Tensor &dst,
                    poplar::program::Sequence &prog, const poplar::DebugContext &debugContext) {
  if (src.shape() != dst.shape())
    poputil::detail::fail("popops::cast", "the shapes are " + poputil::detail::describeShape(src.shape()) + " and " +
                          poputil::detail::describeShape(dst.shape()) + "; expected the same", "Reshape one of them");
  if (src.elementType() == dst.elementType())
    prog.add(poplar::program::Copy(src, dst, false, {debugContext, "Cast"}));
  else
    mapWithOutput(graph, expr::Cast(expr::_1, dst.elementType()), {src}, dst, prog, {debugContext, "Cast"});
}

poplar::program::Program cast(poplar::Graph &graph, poplar::Tensor src, poplar::Tensor dst,
                              const poplar::DebugContext &debugContext) {
  poplar::program::Sequence prog({}, debugContext);
  castWithOutput(graph, src, dst, prog, debugContext);
  return prog;
}

void cast(poplar::Graph &graph, poplar::Tensor src, poplar::Tensor dst, poplar::ComputeSet cs) {
  poplar::program::Sequence steps;
  castWithOutput(graph, src, dst, steps);
  poplar::detail::addToComputeSet(graph, cs, steps);
}

poplar::Tensor cast(poplar::Graph &graph, poplar::Tensor src, const poplar::Type &dstType, poplar::ComputeSet cs,
                    const poplar::DebugContext &debugContext) {
  const auto dst = graph.clone(dstType, src, {debugContext, "Cast/Out"});
  cast(graph, src, dst, cs);
  return dst;
}

poplar::Tensor checkAccuracyWhenCast(poplar::Graph &graph, const poplar::Tensor &input, poplar::Type outputType,
                                     double tolerance, poplar::program::Sequence &prog,
                                     const poplar::DebugContext &debugContext) {
  if (input.elementType() != poplar::FLOAT || outputType != poplar::HALF || input.numElements() != 1)
    poputil::detail::fail("popops::checkAccuracyWhenCast", "it is not a cast of one float to half",
                          "Pass a scalar of type float and the type HALF");
  using namespace expr;
  const auto rounded = expr::Cast(expr::Cast(_1, poplar::HALF), poplar::FLOAT);
  const auto error = Abs(Sub(rounded, _1));
  return map(graph, Lte(error, Mul(Const(static_cast<float>(tolerance)), Abs(_1))), {input.reshape({})}, prog,
             debugContext);
}

}  // namespace popops
