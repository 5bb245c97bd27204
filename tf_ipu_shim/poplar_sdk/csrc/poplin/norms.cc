// Normalises activations by the statistics of their channels.
#include <poplin/Norms.hpp>
#include <popops/Reduce.hpp>

#include "popops/float_expressions.hpp"
#include "poputil/library.hpp"

namespace poplin {

using namespace poputil::library;
using popops::detail::inFloat;
using popops::detail::mapInFloat;

namespace {

// All dimensions but that of the channels; an error if there is none.
Shape otherDims(const Tensor &acts) {
  if (acts.rank() < 2)
    fail("poplin::norm", "the activations have the shape " + poputil::detail::describeShape(acts.shape()),
         "Pass {batch, channels, field...}");
  Shape dims{0};
  for (std::size_t dim = 2; dim < acts.rank(); ++dim) dims.push_back(dim);
  return dims;
}

// A value for each channel, as a tensor that broadcasts to the activations.
Tensor perChannel(const Tensor &values, const Tensor &acts) {
  otherDims(acts);
  Shape shape(acts.rank(), 1);
  shape[1] = values.numElements();
  return values.reshape(shape);
}

// The sum over all but the channels, in float.
Tensor sumChannels(poplar::Graph &graph, const Tensor &tensor, popops::Operation op, Sequence &prog,
                   const poplar::DebugContext &debugContext) {
  return popops::reduce(graph, tensor, poplar::FLOAT, otherDims(tensor), {op}, prog, debugContext);
}

void checkPartials(const poplar::Type &type) {
  if (!poputil::detail::isFloating(type))
    fail("poplin::norm", "the partials have the type " + poputil::detail::typeName(type) + "; expected float or half",
         "Pass poplar::FLOAT");
}

// The replicas that normalise together: one, or those over which a callback sums.
class Replicas {
 public:
  Replicas() = default;
  Replicas(const DistributedNormReduceCallback &sums, unsigned elements, const Tensor &acts) : sums_(sums) {
    otherDims(acts);
    const std::size_t batch = acts.dim(0);
    if (!sums || batch == 0 || elements == 0 || elements % batch != 0)
      fail("poplin::distributedNorm", std::to_string(elements) + " elements are normalised together and the batch has " +
           std::to_string(batch) + (sums ? "" : ", without a callback"),
           "Pass a callback and a multiple of the batch");
    count_ = elements / static_cast<unsigned>(batch);
  }
  float countPerChannel(const Tensor &acts) const {
    otherDims(acts);
    return static_cast<float>(count_ * (acts.numElements() / std::max<std::size_t>(acts.dim(1), 1)));
  }
  std::vector<Tensor> sums(poplar::Graph &graph, const std::vector<Tensor> &parts, Sequence &prog,
                           const poplar::DebugContext &debugContext) const {
    if (!sums_) return parts;
    const auto found = sums_(graph, parts, prog, count_, debugContext, {});
    bool fits = found.size() == parts.size();
    for (std::size_t i = 0; fits && i != parts.size(); ++i)
      fits = found[i].valid() && found[i].shape() == parts[i].shape() && found[i].elementType() == parts[i].elementType();
    if (!fits)
      fail("poplin::distributedNorm", "the callback did not return " + std::to_string(parts.size()) +
           " float tensors of the shapes that it was given", "Return the sum of each tensor");
    return found;
  }

 private:
  DistributedNormReduceCallback sums_;
  unsigned count_ = 1;
};

Tensor productInFloat(poplar::Graph &graph, const Tensor &a, const Tensor &b, Sequence &prog,
                      const poplar::DebugContext &debugContext) {
  using namespace popops::expr;
  return popops::map(graph, Mul(inFloat(_1), inFloat(_2)), {a, b}, prog, debugContext);
}

std::pair<Tensor, Tensor> statistics(poplar::Graph &graph, const Tensor &acts, float eps, Sequence &prog,
                                     bool unbiasedVarEstimate, const Replicas &replicas, const poplar::Type &partials,
                                     const poplar::DebugContext &name) {
  using namespace popops::expr;
  checkPartials(partials);
  const auto count = replicas.countPerChannel(acts);
  const auto divisor = unbiasedVarEstimate && count > 1 ? count - 1 : count;
  const auto sums = [&](const Tensor &tensor, popops::Operation op) {
    return replicas.sums(graph, {sumChannels(graph, tensor, op, prog, name)}, prog, name).front();
  };
  const auto mean = popops::map(graph, Divide(_1, Const(count)), {sums(acts, popops::Operation::ADD)}, prog, name);
  const auto deviations = popops::map(graph, Sub(inFloat(_1), _2), {acts, perChannel(mean, acts)}, prog, name);
  const auto inverse = popops::map(graph, VarianceToInvStdDev(Divide(_1, Const(divisor)), Const(eps)),
                                   {sums(deviations, popops::Operation::SQUARE_ADD)}, prog, name);
  const auto type = acts.elementType();
  return {popops::map(graph, popops::expr::Cast(_1, type), {mean}, prog, name),
          popops::map(graph, popops::expr::Cast(_1, type), {inverse}, prog, name)};
}

Tensor statisticsGradients(poplar::Graph &graph, const Tensor &actsWhitened, const Tensor &gradsIn,
                           const Tensor &invStdDev, Sequence &prog, const Replicas &replicas,
                           const poplar::Type &partials, const poplar::DebugContext &name) {
  using namespace popops::expr;
  checkPartials(partials);
  const Const count(replicas.countPerChannel(actsWhitened));
  const auto product = productInFloat(graph, actsWhitened, gradsIn, prog, name);
  const auto sums = replicas.sums(graph, {sumChannels(graph, gradsIn, popops::Operation::ADD, prog, name),
                                          sumChannels(graph, product, popops::Operation::ADD, prog, name)},
                                  prog, name);
  // (g - mean(g) - w * mean(g * w)) / deviation, for the whitened activations w.
  const auto through_mean = Divide(_3, count);
  const auto through_variance = Mul(inFloat(_2), Divide(_4, count));
  const auto result = Mul(Sub(Sub(inFloat(_1), through_mean), through_variance), inFloat(PlaceHolder(5)));
  return mapInFloat(graph, result,
                    {gradsIn, actsWhitened, perChannel(sums[0], gradsIn), perChannel(sums[1], gradsIn),
                     perChannel(invStdDev, gradsIn)},
                    prog, name);
}

}  // namespace

Tensor createNormGamma(poplar::Graph &graph, const Tensor &acts, const poplar::Type &type,
                       const poplar::DebugContext &debugContext) {
  return poputil::createBroadcastOperand(graph, acts, type, 1, false, {debugContext, "gamma"});
}

Tensor createNormGamma(poplar::Graph &graph, const Tensor &acts, const poplar::DebugContext &debugContext) {
  return createNormGamma(graph, acts, acts.elementType(), debugContext);
}

Tensor createNormBeta(poplar::Graph &graph, const Tensor &acts, const poplar::Type &type,
                      const poplar::DebugContext &debugContext) {
  return poputil::createBroadcastOperand(graph, acts, type, 1, false, {debugContext, "beta"});
}

Tensor createNormBeta(poplar::Graph &graph, const Tensor &acts, const poplar::DebugContext &debugContext) {
  return createNormBeta(graph, acts, acts.elementType(), debugContext);
}

std::pair<Tensor, Tensor> createNormParams(poplar::Graph &graph, const Tensor &acts,
                                           const poplar::DebugContext &debugContext) {
  return {createNormGamma(graph, acts, debugContext), createNormBeta(graph, acts, debugContext)};
}

std::pair<Tensor, Tensor> normStatistics(poplar::Graph &graph, const Tensor &acts, float eps, Sequence &prog,
                                         bool unbiasedVarEstimate, bool, const poplar::Type &partialsType,
                                         const poplar::DebugContext &debugContext) {
  return statistics(graph, acts, eps, prog, unbiasedVarEstimate, {}, partialsType, {debugContext, "normStatistics"});
}

std::pair<Tensor, Tensor> distributedNormStatistics(poplar::Graph &graph, const Tensor &acts, float eps, Sequence &prog,
                                                    bool unbiasedVarEstimate, DistributedNormReduceCallback callback,
                                                    unsigned normSize, bool, const poplar::Type &partialsType,
                                                    const poplar::DebugContext &debugContext) {
  return statistics(graph, acts, eps, prog, unbiasedVarEstimate, {callback, normSize, acts}, partialsType,
                    {debugContext, "distributedNormStatistics"});
}

Tensor normWhiten(poplar::Graph &graph, const Tensor &acts, const Tensor &mean, const Tensor &iStdDev, Sequence &prog,
                  const poplar::DebugContext &debugContext) {
  using namespace popops::expr;
  return mapInFloat(graph, Mul(Sub(inFloat(_1), inFloat(_2)), inFloat(_3)),
                    {acts, perChannel(mean, acts), perChannel(iStdDev, acts)}, prog, {debugContext, "normWhiten"});
}

Tensor normalise(poplar::Graph &graph, const Tensor &actsWhitened, const Tensor &gamma, const Tensor &beta,
                 Sequence &prog, const poplar::DebugContext &debugContext) {
  using namespace popops::expr;
  return mapInFloat(graph, Add(Mul(inFloat(_1), inFloat(_2)), inFloat(_3)),
                    {actsWhitened, perChannel(gamma, actsWhitened), perChannel(beta, actsWhitened)}, prog,
                    {debugContext, "normalise"});
}

std::pair<Tensor, Tensor> normParamGradients(poplar::Graph &graph, const Tensor &actsWhitened, const Tensor &gradsIn,
                                             Sequence &prog, const poplar::Type &partialsType,
                                             const poplar::DebugContext &debugContext) {
  checkPartials(partialsType);
  const poplar::DebugContext name{debugContext, "normParamGradients"};
  const auto product = productInFloat(graph, actsWhitened, gradsIn, prog, name);
  const auto type = actsWhitened.elementType();
  const auto dims = otherDims(actsWhitened);
  return {popops::reduce(graph, product, type, dims, {popops::Operation::ADD}, prog, name),
          popops::reduce(graph, gradsIn, type, dims, {popops::Operation::ADD}, prog, name)};
}

Tensor normGradients(poplar::Graph &graph, const Tensor &gradsIn, const Tensor &gamma, Sequence &prog,
                     const poplar::DebugContext &debugContext) {
  using namespace popops::expr;
  return mapInFloat(graph, Mul(inFloat(_1), inFloat(_2)), {gradsIn, perChannel(gamma, gradsIn)}, prog,
                    {debugContext, "normGradients"});
}

Tensor normStatisticsGradients(poplar::Graph &graph, const Tensor &actsWhitened, const Tensor &gradsIn,
                               const Tensor &invStdDev, Sequence &prog, const poplar::Type &partialsType,
                               const poplar::DebugContext &debugContext) {
  return statisticsGradients(graph, actsWhitened, gradsIn, invStdDev, prog, {}, partialsType,
                             {debugContext, "normStatisticsGradients"});
}

Tensor distributedNormStatisticsGradients(poplar::Graph &graph, const Tensor &actsWhitened, const Tensor &gradsIn,
                                          const Tensor &invStdDev, Sequence &prog,
                                          DistributedNormReduceCallback callback, unsigned normSize,
                                          const poplar::Type &partialsType, const poplar::DebugContext &debugContext) {
  return statisticsGradients(graph, actsWhitened, gradsIn, invStdDev, prog, {callback, normSize, actsWhitened},
                             partialsType, {debugContext, "distributedNormStatisticsGradients"});
}

}  // namespace poplin
