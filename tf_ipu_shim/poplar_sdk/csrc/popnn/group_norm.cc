// Group normalisation: the channels of a group of one element of the batch are normalised as one channel.
#include <numeric>
#include <poplin/Norms.hpp>
#include <popnn/BatchNorm.hpp>
#include <popnn/GroupNorm.hpp>
#include <popnn/Norms.hpp>
#include <popops/ElementWise.hpp>
#include <popops/ScaledAdd.hpp>
#include <poputil/OptionParsing.hpp>
#include <poputil/detail/kernels.hpp>

namespace popnn {

using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;
using poputil::detail::fail;

namespace gn {

namespace {

bool isStrided(const OptionFlags &options) {
  bool strided = true;
  const poplibs::OptionSpec spec{
      {"groupNormStridedChannelGrouping", poplibs::OptionHandler::createWithBool(strided)}};
  try {
    for (const auto &[name, value] : options) spec.parse(name, value, true);
  } catch (const poplar::invalid_option &error) {
    fail("popnn::gn", error.what(), "Pass true or false");
  }
  return strided;
}

// The view {1, batch * groups, the group's elements} of activations {batch, channels, field...}.
Tensor groupView(const Tensor &acts, std::size_t groups, bool strided) {
  const auto shape = acts.shape();
  if (shape.size() < 2 || groups == 0 || shape[1] % groups != 0)
    fail("popnn::gn", "the activations have the shape " + poputil::detail::describeShape(shape) + " for " +
         std::to_string(groups) + " groups", "Pass {batch, channels, field...} with a multiple of the groups");
  const auto batch = shape[0], size = shape[1] / groups, field = acts.numElements() / std::max<std::size_t>(batch * shape[1], 1);
  const auto split = strided ? acts.reshape({batch, size, groups, field}).dimShuffle({0, 2, 1, 3})
                             : acts.reshape({batch, groups, size, field});
  return split.reshape({1, batch * groups, size * field});
}

// A view like groupView()'s, in the order of the activations again.
Tensor ungroup(const Tensor &view, const Tensor &acts, std::size_t groups, bool strided) {
  const auto shape = acts.shape();
  const auto batch = shape[0], size = shape[1] / groups, field = acts.numElements() / std::max<std::size_t>(batch * shape[1], 1);
  const auto split = view.reshape({batch, groups, size, field});
  return (strided ? split.dimShuffle({0, 2, 1, 3}) : split).reshape(shape);
}

std::size_t groupsOf(const Tensor &acts, const Tensor &statistics) {
  return statistics.numElements() / std::max<std::size_t>(acts.dim(0), 1);
}

}  // namespace

std::pair<Tensor, Tensor> groupNormStatistics(poplar::Graph &graph, const Tensor acts, float eps, Sequence &prog,
                                              unsigned numGroups, bool unbiasedVarEstimate, bool stableAlgo,
                                              const poplar::Type &partialsType,
                                              const poplar::DebugContext &debugContext, const OptionFlags &options) {
  return poplin::normStatistics(graph, groupView(acts, numGroups, isStrided(options)), eps, prog, unbiasedVarEstimate,
                                stableAlgo, partialsType, debugContext);
}

Tensor groupNormWhiten(poplar::Graph &graph, const Tensor &acts, const Tensor &mean, const Tensor &invStdDev,
                       Sequence &prog, const poplar::DebugContext &debugContext, const OptionFlags &options) {
  const auto groups = groupsOf(acts, mean);
  const bool strided = isStrided(options);
  const auto whitened =
      poplin::normWhiten(graph, groupView(acts, groups, strided), mean, invStdDev, prog, debugContext);
  return ungroup(whitened, acts, groups, strided);
}

std::pair<Tensor, Tensor> groupNormalise(poplar::Graph &graph, const Tensor &acts, const Tensor &gamma,
                                         const Tensor &beta, const Tensor &mean, const Tensor &invStdDev,
                                         Sequence &prog, const poplar::DebugContext &debugContext,
                                         const OptionFlags &options) {
  const auto whitened = groupNormWhiten(graph, acts, mean, invStdDev, prog, debugContext, options);
  return {poplin::normalise(graph, whitened, gamma, beta, prog, debugContext), whitened};
}

std::pair<Tensor, Tensor> groupNormParamGradients(poplar::Graph &graph, const Tensor &acts, const Tensor &gradsIn,
                                                  const Tensor &mean, const Tensor &iStdDev, Sequence &prog,
                                                  const poplar::Type &partialsType,
                                                  const poplar::DebugContext &debugContext,
                                                  const OptionFlags &options) {
  const auto whitened = groupNormWhiten(graph, acts, mean, iStdDev, prog, debugContext, options);
  return groupNormParamGradients(graph, whitened, gradsIn, prog, partialsType, debugContext, options);
}

std::pair<Tensor, Tensor> groupNormParamGradients(poplar::Graph &graph, const Tensor &actsWhitened,
                                                  const Tensor &gradsIn, Sequence &prog,
                                                  const poplar::Type &partialsType,
                                                  const poplar::DebugContext &debugContext, const OptionFlags &) {
  return poplin::normParamGradients(graph, actsWhitened, gradsIn, prog, partialsType, debugContext);
}

Tensor groupNormGradients(poplar::Graph &graph, const Tensor &acts, const Tensor &gradsIn, const Tensor &mean,
                          const Tensor &invStdDev, const Tensor &gamma, Sequence &prog,
                          const poplar::Type &partialsType, const poplar::DebugContext &debugContext,
                          const OptionFlags &options) {
  const auto whitened = groupNormWhiten(graph, acts, mean, invStdDev, prog, debugContext, options);
  return groupNormGradients(graph, whitened, gradsIn, invStdDev, gamma, prog, partialsType, debugContext, options);
}

Tensor groupNormGradients(poplar::Graph &graph, const Tensor &actsWhitened, const Tensor &gradsIn,
                          const Tensor &invStdDev, const Tensor &gamma, Sequence &prog,
                          const poplar::Type &partialsType, const poplar::DebugContext &debugContext,
                          const OptionFlags &options) {
  const auto groups = groupsOf(actsWhitened, invStdDev);
  const bool strided = isStrided(options);
  const auto scaled = poplin::normGradients(graph, gradsIn, gamma, prog, debugContext);
  const auto result = poplin::normStatisticsGradients(graph, groupView(actsWhitened, groups, strided),
                                                      groupView(scaled, groups, strided), invStdDev, prog,
                                                      partialsType, debugContext);
  return ungroup(result, actsWhitened, groups, strided);
}

void groupNormParamUpdate(poplar::Graph &graph, const Tensor &gammaDelta, const Tensor &betaDelta, float scale,
                          Tensor &gamma, Tensor &beta, Sequence &prog, const poplar::DebugContext &debugContext,
                          const OptionFlags &) {
  popops::scaledAddTo(graph, gamma, gammaDelta, scale, prog, {debugContext, "gamma"});
  popops::scaledAddTo(graph, beta, betaDelta, scale, prog, {debugContext, "beta"});
}

void groupNormParamUpdate(poplar::Graph &graph, const Tensor &gammaDelta, const Tensor &betaDelta, const Tensor &scale,
                          Tensor &gamma, Tensor &beta, Sequence &prog, const poplar::DebugContext &debugContext,
                          const OptionFlags &) {
  popops::scaledAddTo(graph, gamma, gammaDelta, scale, prog, {debugContext, "gamma"});
  popops::scaledAddTo(graph, beta, betaDelta, scale, prog, {debugContext, "beta"});
}

}  // namespace gn

namespace bn {

std::pair<Tensor, Tensor> batchNormStatistics(poplar::Graph &graph, const Tensor acts, float eps, Sequence &prog,
                                              bool unbiasedVarEstimate, bool stableAlgo,
                                              const poplar::Type &partialsType,
                                              const poplar::DebugContext &debugContext, const OptionFlags &) {
  return poplin::normStatistics(graph, acts, eps, prog, unbiasedVarEstimate, stableAlgo, partialsType, debugContext);
}

Tensor batchNormWhiten(poplar::Graph &graph, const Tensor &acts, const Tensor &mean, const Tensor &invStdDev,
                       Sequence &prog, const poplar::DebugContext &debugContext, const OptionFlags &) {
  return poplin::normWhiten(graph, acts, mean, invStdDev, prog, debugContext);
}

std::pair<Tensor, Tensor> batchNormalise(poplar::Graph &graph, const Tensor &acts, const Tensor &gamma,
                                         const Tensor &beta, const Tensor &mean, const Tensor &invStdDev,
                                         Sequence &prog, const poplar::DebugContext &debugContext,
                                         const OptionFlags &options) {
  const auto whitened = batchNormWhiten(graph, acts, mean, invStdDev, prog, debugContext, options);
  return {poplin::normalise(graph, whitened, gamma, beta, prog, debugContext), whitened};
}

Tensor batchNormalise(poplar::Graph &graph, const Tensor &acts, const Tensor &combinedMultiplicand,
                      const Tensor &addend, Sequence &prog, const poplar::DebugContext &debugContext,
                      const OptionFlags &) {
  return poplin::normalise(graph, acts, combinedMultiplicand, addend, prog, debugContext);
}

std::pair<Tensor, Tensor> batchNormParamGradients(poplar::Graph &graph, const Tensor &acts, const Tensor &gradsIn,
                                                  const Tensor &mean, const Tensor &iStdDev, Sequence &prog,
                                                  const poplar::Type &partialsType,
                                                  const poplar::DebugContext &debugContext,
                                                  const OptionFlags &options) {
  const auto whitened = batchNormWhiten(graph, acts, mean, iStdDev, prog, debugContext, options);
  return batchNormParamGradients(graph, whitened, gradsIn, prog, partialsType, debugContext, options);
}

std::pair<Tensor, Tensor> batchNormParamGradients(poplar::Graph &graph, const Tensor &actsWhitened,
                                                  const Tensor &gradsIn, Sequence &prog,
                                                  const poplar::Type &partialsType,
                                                  const poplar::DebugContext &debugContext, const OptionFlags &) {
  return poplin::normParamGradients(graph, actsWhitened, gradsIn, prog, partialsType, debugContext);
}

Tensor batchNormGradients(poplar::Graph &graph, const Tensor &acts, const Tensor &gradsIn, const Tensor &mean,
                          const Tensor &invStdDev, const Tensor &gamma, Sequence &prog,
                          const poplar::Type &partialsType, const poplar::DebugContext &debugContext,
                          const OptionFlags &options) {
  const auto whitened = batchNormWhiten(graph, acts, mean, invStdDev, prog, debugContext, options);
  return batchNormGradients(graph, whitened, gradsIn, invStdDev, gamma, prog, partialsType, debugContext, options);
}

Tensor batchNormGradients(poplar::Graph &graph, const Tensor &actsWhitened, const Tensor &gradsIn,
                          const Tensor &invStdDev, const Tensor &gamma, Sequence &prog,
                          const poplar::Type &partialsType, const poplar::DebugContext &debugContext,
                          const OptionFlags &) {
  const auto scaled = poplin::normGradients(graph, gradsIn, gamma, prog, debugContext);
  return poplin::normStatisticsGradients(graph, actsWhitened, scaled, invStdDev, prog, partialsType, debugContext);
}

void batchNormParamUpdate(poplar::Graph &graph, const Tensor &gammaDelta, const Tensor &betaDelta, float scale,
                          Tensor &gamma, Tensor &beta, Sequence &prog, const poplar::DebugContext &debugContext,
                          const OptionFlags &options) {
  gn::groupNormParamUpdate(graph, gammaDelta, betaDelta, scale, gamma, beta, prog, debugContext, options);
}

void batchNormParamUpdate(poplar::Graph &graph, const Tensor &gammaDelta, const Tensor &betaDelta, const Tensor &scale,
                          Tensor &gamma, Tensor &beta, Sequence &prog, const poplar::DebugContext &debugContext,
                          const OptionFlags &options) {
  gn::groupNormParamUpdate(graph, gammaDelta, betaDelta, scale, gamma, beta, prog, debugContext, options);
}

}  // namespace bn

Tensor createNormGamma(poplar::Graph &graph, const Tensor &acts, const poplar::DebugContext &debugContext) {
  return poplin::createNormGamma(graph, acts, debugContext);
}

Tensor createNormBeta(poplar::Graph &graph, const Tensor &acts, const poplar::DebugContext &debugContext) {
  return poplin::createNormBeta(graph, acts, debugContext);
}

std::pair<Tensor, Tensor> createNormParams(poplar::Graph &graph, const Tensor acts,
                                           const poplar::DebugContext &debugContext) {
  return poplin::createNormParams(graph, acts, debugContext);
}

}  // namespace popnn
