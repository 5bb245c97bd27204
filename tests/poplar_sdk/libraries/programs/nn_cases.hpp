// Cases of poplin, popnn and poprand.
#pragma once

#include <poplin/Cholesky.hpp>
#include <poplin/ConvUtil.hpp>
#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/MeshGrid.hpp>
#include <poplin/TriangularSolve.hpp>
#include <popnn/BatchNorm.hpp>
#include <popnn/GroupNorm.hpp>
#include <popnn/InstanceNorm.hpp>
#include <popnn/LayerNorm.hpp>
#include <popnn/LogSoftmax.hpp>
#include <popnn/Loss.hpp>
#include <popnn/NonLinearity.hpp>
#include <popnn/NonLinearityDefUtil.hpp>
#include <popnn/Pooling.hpp>
#include <popnn/SpatialSoftMax.hpp>
#include <poprand/RandomGen.hpp>
#include <sstream>

#include "cases.hpp"

inline Tensor copyOf(Case &c, const Tensor &t) {
  const auto result = c.graph.clone(t);
  c.prog.add(program::Copy(t, result));
  return result;
}

inline std::vector<NamedCase> nnCases() {
  using Input = poplin::ConvParams::InputTransform;
  using Output = poplin::ConvParams::OutputTransform;
  std::vector<NamedCase> cases;
  for (const auto &type : {FLOAT, HALF})
    cases.push_back({"matmul " + std::string(type.toString()), [=](Case &c) {
                       const auto a = c.input("a", type, {13, 21}), b = c.input("b", type, {21, 9});
                       const auto old = c.input("old", type, {13, 9}), k = c.data("k", FLOAT, {}, {0.5});
                       const auto ga = c.input("ga", type, {3, 4, 5}), gb = c.input("gb", type, {3, 5, 2});
                       c.output("a.b", poplin::matMul(c.graph, a, b, c.prog));
                       c.output("float", poplin::matMul(c.graph, a, b, c.prog, FLOAT));
                       c.output("transposed", poplin::matMul(c.graph, b.transpose(), a.transpose(), c.prog));
                       c.output("grouped", poplin::matMulGrouped(c.graph, ga, gb, c.prog, type));
                       const auto sum = copyOf(c, old), other = copyOf(c, old);
                       poplin::matMulAcc(c.graph, sum, 2.0f, a, b, c.prog);
                       poplin::matMulAcc(c.graph, other, k, a, b, c.prog);
                       c.output("sum", sum);
                       c.output("other", other);
                       c.error("shapes", [&] { poplin::matMul(c.graph, a, a, c.prog); });
                     }});
  const auto convolution = [](Case &c, const poplin::ConvParams &params) {
    Shape in{params.batchSize, params.getNumInputChans()}, w{params.numConvGroups, params.outputChannelsPerConvGroup,
                                                            params.inputChannelsPerConvGroup};
    in.insert(in.end(), params.inputFieldShape.begin(), params.inputFieldShape.end());
    w.insert(w.end(), params.kernelShape.begin(), params.kernelShape.end());
    const auto x = c.input("x", params.inputType, in), weights = c.input("w", params.inputType, w);
    const auto y = poplin::convolution(c.graph, x, weights, params, false, c.prog);
    c.output("y", y);
    const auto g = c.input("g", params.outputType, y.shape());
    c.output("dx", poplin::convolution(c.graph, g, weights, poplin::getGradientParams(params), true, c.prog));
    c.output("dw", poplin::calculateWeightDeltas(c.graph, g, x, params, c.prog));
    const auto updated = copyOf(c, weights);
    poplin::convolutionWeightUpdate(c.graph, g, updated, x, params, -0.5f, c.prog);
    c.output("updated", updated);
  };
  cases.push_back({"conv plain", [=](Case &c) {
                     convolution(c, {FLOAT, 2, {6, 7}, {3, 2}, 3, 4, 1});
                     const auto b = c.input("b", FLOAT, {4}), act = c.input("act", FLOAT, {2, 4, 3, 5});
                     const auto biased = copyOf(c, act), biases = copyOf(c, b);
                     poplin::addBias(c.graph, biased, b, c.prog);
                     poplin::convolutionBiasUpdate(c.graph, act, biases, 0.25f, {}, c.prog);
                     c.output("biased", biased);
                     c.output("biases", biases);
                   }});
  cases.push_back({"conv groups", [=](Case &c) { convolution(c, {FLOAT, 1, {9}, {4}, 2, 3, 2}); }});
  cases.push_back({"conv strided", [=](Case &c) {
                     convolution(c, {FLOAT, FLOAT, 2, {8, 9}, {3, 3}, 2, 2, 1, Input({0, 0}, {0, 0}, {1, 1}, {1, 2}, {2, 1}, {false, false}),
                                     Input({0, 0}, {0, 0}, {2, 1}, {0, 0}, {0, 0}, {false, false}), Output({0, 0}, {0, 0}, {2, 3}, {0, 0}, {0, 0})});
                   }});
  cases.push_back({"conv transforms", [=](Case &c) {
                     convolution(c, {FLOAT, FLOAT, 1, {10}, {4}, 2, 2, 1, Input({1}, {2}, {2}, {3}, {1}, {true}),
                                     Input({1}, {0}, {2}, {1}, {0}, {true}), Output({1}, {2}, {2}, {1}, {2})});
                   }});
  cases.push_back({"conv half", [=](Case &c) { convolution(c, {HALF, 1, {5, 5}, {3, 3}, 2, 2, 1}); }});
  cases.push_back({"solve", [](Case &c) {
                     const auto a = c.input("a", FLOAT, {2, 4, 4}, 1, 3), b = c.input("b", FLOAT, {2, 4, 3});
                     for (bool lower : {false, true})
                       for (bool unit : {false, true}) {
                         const auto name = std::string(lower ? "lower" : "upper") + (unit ? " unit" : "");
                         c.output(name, poplin::triangularSolve(c.graph, a, b, true, lower, unit, c.prog));
                         c.output(name + " right", poplin::triangularSolve(c.graph, a, b.dimShuffle({0, 2, 1}), false, lower, unit, c.prog));
                         c.output(name + " mask", poplin::triangularMask(c.graph, a, lower, unit, c.prog));
                       }
                     const auto square = poplin::matMulGrouped(c.graph, a, a.dimShuffle({0, 2, 1}), c.prog, FLOAT);
                     c.output("square", square);
                     c.output("cholesky lower", poplin::cholesky(c.graph, square, true, c.prog));
                     c.output("cholesky upper", poplin::cholesky(c.graph, square, false, c.prog));
                     const auto line = poplin::linspace(c.graph, FLOAT, -1, 2, 7);
                     const auto grid = poplin::meshgrid2d(c.graph, line, a[0][0]);
                     c.output("line", copyOf(c, line));
                     c.output("grid x", copyOf(c, grid[0]));
                     c.output("grid y", copyOf(c, grid[1]));
                   }});
  using N = popnn::NonLinearityType;
  for (const auto &type : {FLOAT, HALF})
    cases.push_back({"non-linearities " + std::string(type.toString()), [=](Case &c) {
                       const auto x = c.input("x", type, {9, 17}, -4, 4), g = c.input("g", type, {9, 17});
                       for (auto kind : {N::SIGMOID, N::HARD_SIGMOID, N::RELU, N::TANH, N::GELU, N::GELU_ERF, N::SWISH,
                                         N::SOFTMAX, N::SOFTMAX_STABLE}) {
                         std::ostringstream name;
                         name << kind;
                         const auto y = popnn::nonLinearity(c.graph, kind, x, c.prog);
                         const bool from_input = kind == N::GELU || kind == N::GELU_ERF || kind == N::SWISH;
                         c.output(name.str(), y);
                         c.output(name.str() + " gradient",
                                  popnn::nonLinearityInputGradient(c.graph, kind, from_input ? x : y, g, c.prog));
                       }
                       float scale = 0;
                       c.output("scaled", popnn::scaledSoftmaxStable(c.graph, x, scale, c.prog));
                       c.output("log", popnn::logSoftmax(c.graph, x, c.prog));
                       const auto y = copyOf(c, x);
                       popnn::reluInPlace(c.graph, y, c.prog);
                       c.output("in place", y);
                       c.output("spatial", popnn::spatialSoftMax2D(c.graph, c.prog, x.reshape({1, 9, 17}), 2).first);
                     }});
  cases.push_back({"norms", [](Case &c) {
                     const auto x = c.input("x", FLOAT, {4, 6, 5}), g = c.input("g", FLOAT, {4, 6, 5});
                     const auto gamma = c.input("gamma", FLOAT, {6}), beta = c.input("beta", FLOAT, {6});
                     const auto keep = [&](const std::string &name, const std::pair<Tensor, Tensor> &statistics,
                                           const std::pair<Tensor, Tensor> &result, const std::pair<Tensor, Tensor> &parameters,
                                           const Tensor &gradient) {
                       c.output(name + " mean", statistics.first);
                       c.output(name + " inverse", statistics.second);
                       c.output(name + " y", copyOf(c, result.first));
                       c.output(name + " dgamma", parameters.first);
                       c.output(name + " dbeta", parameters.second);
                       c.output(name + " dx", copyOf(c, gradient));
                     };
                     auto s = popnn::bn::batchNormStatistics(c.graph, x, 1e-3f, c.prog, false);
                     auto y = popnn::bn::batchNormalise(c.graph, x, gamma, beta, s.first, s.second, c.prog);
                     keep("batch", s, y, popnn::bn::batchNormParamGradients(c.graph, y.second, g, c.prog),
                          popnn::bn::batchNormGradients(c.graph, y.second, g, s.second, gamma, c.prog));
                     s = popnn::ln::layerNormStatistics(c.graph, x, 1e-3f, c.prog, false);
                     y = popnn::ln::layerNormalise(c.graph, x, gamma, beta, s.first, s.second, c.prog);
                     keep("layer", s, y, popnn::ln::layerNormParamGradients(c.graph, y.second, g, c.prog),
                          popnn::ln::layerNormGradients(c.graph, x, g, s.first, s.second, gamma, c.prog));
                     for (bool strided : {true, false}) {
                       const OptionFlags options{{"groupNormStridedChannelGrouping", strided ? "true" : "false"}};
                       s = popnn::gn::groupNormStatistics(c.graph, x, 1e-3f, c.prog, 3, false, false, FLOAT, {}, options);
                       y = popnn::gn::groupNormalise(c.graph, x, gamma, beta, s.first, s.second, c.prog, {}, options);
                       keep(strided ? "strided" : "group", s, y,
                            popnn::gn::groupNormParamGradients(c.graph, y.second, g, c.prog, FLOAT, {}, options),
                            popnn::gn::groupNormGradients(c.graph, y.second, g, s.second, gamma, c.prog, FLOAT, {}, options));
                     }
                     c.output("unbiased", popnn::in::instanceNormStatistics(c.graph, x, 1e-3f, c.prog, true, false).second);
                   }});
  for (auto kind : {popnn::PoolingType::MAX, popnn::PoolingType::AVG, popnn::PoolingType::SUM})
    cases.push_back({std::string("pool ") + popnn::pooling::asString(kind), [=](Case &c) {
                       const popnn::pooling::PoolParams params(kind, {7, 6}, {3, 2}, {2, 2}, {1, -1}, {1, 1}, 2, 3, FLOAT);
                       const auto x = c.input("x", FLOAT, {3, 2, 7, 6});
                       const auto y = popnn::pooling::pool(c.graph, params, x, c.prog);
                       const auto g = c.input("g", FLOAT, y.shape());
                       c.output("y", y);
                       c.output("dx", popnn::pooling::poolInputGradient(c.graph, params, x, y, g, false, c.prog));
                     }});
  cases.push_back({"loss", [](Case &c) {
                     const auto p = popnn::softmax(c.graph, c.input("x", FLOAT, {6, 5}), c.prog);
                     const auto labels = c.data("labels", UNSIGNED_INT, {6}, {2, 0, 4, 4294967295.0, 1, 3});
                     c.output("p", p);
                     for (auto kind : {popnn::CROSS_ENTROPY_LOSS, popnn::SUM_SQUARED_LOSS}) {
                       const std::string name = kind == popnn::CROSS_ENTROPY_LOSS ? "entropy" : "squares";
                       const auto loss = c.graph.addVariable(FLOAT, {6}), correct = c.graph.addVariable(UNSIGNED_INT, {});
                       c.graph.setTileMapping(loss, 1);
                       c.graph.setTileMapping(correct, 2);
                       const auto deltas = c.graph.clone(p);
                       c.prog.add(popnn::calcLoss(c.graph, p, labels, loss, deltas, correct, kind));
                       c.output(name, loss);
                       c.output(name + " deltas", deltas);
                       c.output(name + " correct", correct);
                     }
                     const auto best = popnn::maxAndArgMax(c.graph, p, c.prog), worst = popnn::minAndArgMin(c.graph, p, c.prog);
                     c.output("max", best.first);
                     c.output("argmax", best.second);
                     c.output("min", worst.first);
                     c.output("argmin", worst.second);
                     Tensor places;
                     c.output("top", popnn::topK(c.graph, p, places, 3, true, c.prog));
                     c.output("places", places);
                   }});
  cases.push_back({"random", [](Case &c) {
                     const auto seed = c.data("seed", UNSIGNED_INT, {2}, {7, 9}), like = c.input("like", FLOAT, {100000});
                     c.output("uniform", poprand::uniform(c.graph, &seed, 1, like, FLOAT, -2, 3, c.prog));
                     c.output("uniform again", poprand::uniform(c.graph, &seed, 1, like, FLOAT, -2, 3, c.prog));
                     c.output("uniform other", poprand::uniform(c.graph, &seed, 2, like, FLOAT, -2, 3, c.prog));
                     c.output("half", poprand::uniform(c.graph, &seed, 1, like, HALF, 0.1, 1.1, c.prog));
                     c.output("int", poprand::uniform(c.graph, &seed, 3, like, INT, -3, 4, c.prog));
                     c.output("log", poprand::logUniform(c.graph, &seed, 4, like, FLOAT, 1, 1000, c.prog));
                     c.output("bernoulli", poprand::bernoulli(c.graph, &seed, 5, like, FLOAT, 0.3, c.prog));
                     c.output("normal", poprand::normal(c.graph, &seed, 6, like, FLOAT, 1, 2, c.prog));
                     c.output("truncated", poprand::truncatedNormal(c.graph, &seed, 7, like, FLOAT, 0, 1, 1.5, c.prog));
                     c.output("dropout", poprand::dropout(c.graph, &seed, 8, like, like, 0.75, 1 / 0.75, c.prog));
                     c.output("shaped", poprand::shapedDropout(c.graph, &seed, 8, like.reshape({100, 1000}),
                                                               like.slice(0, 100).reshape({100, 1}), 0.5, 2, c.prog));
                     c.error("seed", [&] {
                       const Tensor number = like.slice(0, 2);
                       poprand::uniform(c.graph, &number, 1, like, FLOAT, -2, 3, c.prog);
                     });
                     poprand::setSeed(c.graph, seed, 1, c.prog);
                     c.output("drawn", poprand::uniform(c.graph, nullptr, 0, like, FLOAT, 0, 1, c.prog));
                     c.output("drawn next", poprand::uniform(c.graph, nullptr, 0, like, FLOAT, 0, 1, c.prog));
                     poprand::setSeed(c.graph, seed, 1, c.prog);
                     c.output("drawn again", poprand::uniform(c.graph, nullptr, 0, like, FLOAT, 0, 1, c.prog));
                   }});
  return cases;
}
