// Builds loops with a counter, up to a constant or to a limit in a tensor.
#include <limits>
#include <popops/ElementWise.hpp>
#include <popops/Fill.hpp>
#include <popops/Loop.hpp>
#include <poputil/detail/kernels.hpp>

namespace popops {

namespace {

using poplar::Tensor;
using poplar::program::Sequence;

// Adds the step to the counter, in its own type.
void addStep(poplar::Graph &graph, const Tensor &counter, int step, Sequence &prog,
             const poplar::DebugContext &debugContext) {
  mapInPlace(graph, expr::Add(expr::_1, expr::Const(step)), {counter}, prog, {debugContext, "step"});
}

}  // namespace

Sequence countedLoop(poplar::Graph &graph, std::size_t begin, std::size_t end, size_t step,
                     const CountedLoopBodyType &body, const poplar::DebugContext &debugContext) {
  if (step == 0) poputil::detail::fail("popops::countedLoop", "the step is 0", "Pass a step of at least 1");
  if (end > std::numeric_limits<unsigned>::max() || step > std::numeric_limits<unsigned>::max())
    poputil::detail::fail("popops::countedLoop", "the end or the step does not fit 32 bits", "Nest two loops");
  const auto counter = graph.addVariable(poplar::UNSIGNED_INT, {1}, {debugContext, "counter"});
  graph.setTileMapping(counter, 0);
  Sequence prog({}, debugContext);
  fill(graph, counter, prog, static_cast<unsigned>(begin), {debugContext, "begin"});
  Sequence loop({body(counter)}, {debugContext, "body"});
  mapInPlace(graph, expr::Add(expr::_1, expr::Const(static_cast<unsigned>(step))), {counter}, loop,
             {debugContext, "step"});
  const auto count = end > begin ? (end - begin + step - 1) / step : 0;
  prog.add(poplar::program::Repeat(count, loop, debugContext));
  return prog;
}

Sequence countedLoop(poplar::Graph &graph, std::size_t count, const CountedLoopBodyType &body,
                     const poplar::DebugContext &debugContext) {
  return countedLoop(graph, 0, count, 1, body, debugContext);
}

Sequence countedForLoop(poplar::Graph &graph, const Tensor &count, int initialCount, const Tensor &countLimit,
                        int countStep, const poplar::program::Program &body,
                        const poplar::DebugContext &debugContext) {
  Sequence prog({}, debugContext);
  fill(graph, count, prog, initialCount, {debugContext, "begin"});
  Sequence condition({}, {debugContext, "condition"});
  const auto goes_on = neq(graph, count.reshape({}), countLimit.reshape({}), condition, {debugContext, "condition"});
  Sequence loop({body}, {debugContext, "body"});
  addStep(graph, count, countStep, loop, debugContext);
  prog.add(poplar::program::RepeatWhileTrue(condition, goes_on, loop, debugContext));
  return prog;
}

Sequence countedForLoop(poplar::Graph &graph, int initialCount, const Tensor &countLimit, int countStep,
                        const poplar::program::Program &body, const poplar::DebugContext &debugContext) {
  const auto count = graph.addVariable(countLimit.elementType(), {}, {debugContext, "counter"});
  graph.setTileMapping(count, 0);
  return countedForLoop(graph, count, initialCount, countLimit, countStep, body, debugContext);
}

}  // namespace popops
