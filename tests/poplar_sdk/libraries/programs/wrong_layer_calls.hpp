// Calls of poplin, popnn and poprand with arguments to be changed.
#pragma once

#include <poplin/Cholesky.hpp>
#include <poplin/ConvParams.hpp>
#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/MeshGrid.hpp>
#include <poplin/Norms.hpp>
#include <poplin/TriangularSolve.hpp>
#include <popnn/BatchNorm.hpp>
#include <popnn/CTCInference.hpp>
#include <popnn/CTCLoss.hpp>
#include <popnn/GroupNorm.hpp>
#include <popnn/Gru.hpp>
#include <popnn/LogSoftmax.hpp>
#include <popnn/Loss.hpp>
#include <popnn/Lstm.hpp>
#include <popnn/NonLinearity.hpp>
#include <popnn/Pooling.hpp>
#include <popnn/SpatialSoftMax.hpp>
#include <poprand/RandomGen.hpp>

#include "wrong_arguments.hpp"

namespace wrong {

inline poplin::ConvParams convolutionOf(Arguments &a) {
  return poplin::ConvParams(FLOAT, a.number<std::uint8_t>(2), a.numbers<>({6, 5}), a.numbers<>({3, 2}),
     a.number<std::uint8_t>(4),
                            a.number<std::uint8_t>(3), 1);
}

inline popnn::pooling::PoolParams poolingOf(Arguments &a) {
  return popnn::pooling::PoolParams(popnn::PoolingType::MAX, a.numbers<>({6, 5}), a.numbers<>({3, 2}),
                                    a.numbers<unsigned>({2, 1}), a.numbers<int>({1, 0}), a.numbers<int>({0, 1}), 4,
                                       2, FLOAT);
}

inline const std::vector<Attempt> &layerCalls() {
  using namespace poplin;
  using namespace popnn;
  static const std::vector<Attempt> calls = {
      {"matMul", [](Arguments &a) { matMul(a.graph, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {4, 5}), a.prog,
         a.type(FLOAT), {}, a.options()); }},
      {"matMulWithOutput", [](Arguments &a) { auto out = a.tensor(FLOAT, {3, 5}); matMulWithOutput(a.graph,
         a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {4, 5}), out, a.prog); }},
      {"matMulGrouped", [](Arguments &a) { matMulGrouped(a.graph, a.tensor(FLOAT, {2, 3, 4}), a.tensor(FLOAT, {2, 4,
         5}), a.prog, FLOAT); }},
      {"matMulAcc", [](Arguments &a) { matMulAcc(a.graph, a.tensor(FLOAT, {3, 5}), a.tensor(FLOAT, {}),
         a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {4, 5}), a.prog); }},
      {"createMatMulInputLHS", [](Arguments &a) { createMatMulInputLHS(a.graph, a.type(FLOAT), a.numbers<>({3, 4}),
         a.numbers<>({4, 5}), "lhs"); }},
      {"createMatMulOutput", [](Arguments &a) { createMatMulOutput(a.graph, a.type(FLOAT), a.numbers<>({3, 4}),
         a.numbers<>({4, 5}), "out"); }},
      {"transposeGroupedMatrix", [](Arguments &a) { transposeGroupedMatrix(a.tensor(FLOAT, {2, 3, 4})); }},
      {"createWeights", [](Arguments &a) { createWeights(a.graph, convolutionOf(a)); }},
      {"createInput", [](Arguments &a) { poplin::createInput(a.graph, convolutionOf(a)); }},
      {"convolution", [](Arguments &a) { const auto params = convolutionOf(a); convolution(a.graph, a.tensor(FLOAT,
         {2, 4, 6, 5}), a.tensor(FLOAT, {1, 3, 4, 3, 2}), params, false, a.prog); }},
      {"convolution transposed", [](Arguments &a) { convolution(a.graph, a.tensor(FLOAT, {2, 4, 6, 5}),
         a.tensor(FLOAT, {1, 4, 3, 3, 2}), ConvParams(FLOAT, 2, {6, 5}, {3, 2}, 4, 3, 1), true, a.prog); }},
      {"calculateWeightDeltas", [](Arguments &a) { calculateWeightDeltas(a.graph, a.tensor(FLOAT, {2, 3, 4, 4}),
         a.tensor(FLOAT, {2, 4, 6, 5}), ConvParams(FLOAT, 2, {6, 5}, {3, 2}, 4, 3, 1), a.prog); }},
      {"weightsTransposeChansFlipXY", [](Arguments &a) { weightsTransposeChansFlipXY(a.graph, a.tensor(FLOAT, {1, 3,
         4, 3, 2}), a.tensor(FLOAT, {1, 4, 3, 3, 2}), a.prog); }},
      {"createBiases", [](Arguments &a) { createBiases(a.graph, a.tensor(FLOAT, {2, 4, 6})); }},
      {"addBias", [](Arguments &a) { addBias(a.graph, a.tensor(FLOAT, {2, 4, 6}), a.tensor(FLOAT, {4}), a.prog); }},
      {"convolutionBiasUpdate", [](Arguments &a) { convolutionBiasUpdate(a.graph, a.tensor(FLOAT, {2, 4, 6}),
         a.tensor(FLOAT, {4}), a.tensor(FLOAT, {}), a.options(), a.prog); }},
      {"createNormParams", [](Arguments &a) { createNormParams(a.graph, a.tensor(FLOAT, {2, 4, 6})); }},
      {"normStatistics", [](Arguments &a) { normStatistics(a.graph, a.tensor(FLOAT, {2, 4, 6}), 0.1f, a.prog, false,
         false, a.type(FLOAT)); }},
      {"normWhiten", [](Arguments &a) { normWhiten(a.graph, a.tensor(FLOAT, {2, 4, 6}), a.tensor(FLOAT, {4}),
         a.tensor(FLOAT, {4}), a.prog); }},
      {"normStatisticsGradients", [](Arguments &a) { normStatisticsGradients(a.graph, a.tensor(FLOAT, {2, 4, 6}),
         a.tensor(FLOAT, {2, 4, 6}), a.tensor(FLOAT, {4}), a.prog); }},
      {"cholesky", [](Arguments &a) { cholesky(a.graph, a.tensor(FLOAT, {3, 3}), true, a.prog, {}, a.options()); }},
      {"triangularMask", [](Arguments &a) { triangularMask(a.graph, a.tensor(FLOAT, {3, 3}), true, true, a.prog); }},
      {"triangularSolve", [](Arguments &a) { triangularSolve(a.graph, a.tensor(FLOAT, {3, 3}), a.tensor(FLOAT, {3,
         2}), true, true, true, a.prog); }},
      {"linspace", [](Arguments &a) { linspace(a.graph, a.type(FLOAT), 0, 1, a.number<std::uint8_t>(5)); }},
      {"meshgrid2d", [](Arguments &a) { meshgrid2d(a.graph, a.tensor(FLOAT, {3}), a.tensor(FLOAT, {4})); }},
      {"batchNormStatistics", [](Arguments &a) { bn::batchNormStatistics(a.graph, a.tensor(FLOAT, {2, 4, 6}), 0.1f,
         a.prog, false); }},
      {"batchNormalise", [](Arguments &a) { bn::batchNormalise(a.graph, a.tensor(FLOAT, {2, 4, 6}), a.tensor(FLOAT,
         {4}), a.tensor(FLOAT, {4}), a.tensor(FLOAT, {4}), a.tensor(FLOAT, {4}), a.prog); }},
      {"groupNormStatistics", [](Arguments &a) { gn::groupNormStatistics(a.graph, a.tensor(FLOAT, {2, 4, 6}), 0.1f,
         a.prog, a.number(2u), false); }},
      {"calcLoss", [](Arguments &a) { a.prog.add(calcLoss(a.graph, a.tensor(FLOAT, {3, 5}), a.tensor(UNSIGNED_INT,
         {3}), a.tensor(FLOAT, {3}), a.tensor(FLOAT, {3, 5}), a.tensor(UNSIGNED_INT, {}), CROSS_ENTROPY_LOSS)); }},
      {"calcAccuracy", [](Arguments &a) { a.prog.add(calcAccuracy(a.graph, a.tensor(FLOAT, {3, 5}),
         a.tensor(UNSIGNED_INT, {3}), a.tensor(UNSIGNED_INT, {}))); }},
      {"argMax", [](Arguments &a) { argMax(a.graph, a.tensor(FLOAT, {3, 5}), a.prog); }},
      {"popnn::topK", [](Arguments &a) { Tensor at; popnn::topK(a.graph, a.tensor(FLOAT, {3, 5}), at, a.number(2u),
         true, a.prog); }},
      {"nonLinearity", [](Arguments &a) { nonLinearity(a.graph, NonLinearityType::SOFTMAX_STABLE, a.tensor(FLOAT, {3,
         5}), a.prog); }},
      {"nonLinearityInPlace", [](Arguments &a) { nonLinearityInPlace(a.graph, NonLinearityType::RELU, a.tensor(FLOAT,
         {3, 5}), a.prog); }},
      {"nonLinearityInputGradient", [](Arguments &a) { nonLinearityInputGradient(a.graph, NonLinearityType::SOFTMAX,
         a.tensor(FLOAT, {3, 5}), a.tensor(FLOAT, {3, 5}), a.prog); }},
      {"logSoftmax", [](Arguments &a) { logSoftmax(a.graph, a.tensor(FLOAT, {3, 5}), a.prog); }},
      {"spatialSoftMax2D", [](Arguments &a) { spatialSoftMax2D(a.graph, a.prog, a.tensor(FLOAT, {2, 3, 5}), 1.0f); }},
      {"pool", [](Arguments &a) { const auto params = poolingOf(a); pooling::pool(a.graph, params, a.tensor(FLOAT,
         {2, 4, 6, 5}), a.prog); }},
      {"poolInputGradient", [](Arguments &a) { pooling::poolInputGradient(a.graph,
         pooling::PoolParams(PoolingType::MAX, {6}, {2}, {2}, {0}, {0}, 4, 2, FLOAT), a.tensor(FLOAT, {2, 4, 6}),
         a.tensor(FLOAT, {2, 4, 3}), a.tensor(FLOAT, {2, 4, 3}), false, a.prog); }},
      {"ctc::calcCTCLossLogits", [](Arguments &a) {
         const auto plan = ctc::plan(a.graph, FLOAT, FLOAT, 2, 6, 3, 5);
         ctc::calcCTCLossLogits(a.graph, FLOAT, a.tensor(FLOAT, {6, 2, 5}), a.tensor(UNSIGNED_INT, {2, 3}),
            a.tensor(UNSIGNED_INT, {2}), a.tensor(UNSIGNED_INT, {2}), a.prog, a.number(4u), plan);
       }},
      {"ctc_infer::beamSearchDecoderLogits", [](Arguments &a) {
         const auto plan = ctc_infer::plan(a.graph, FLOAT, 2, 6, 5, 3);
         ctc_infer::beamSearchDecoderLogits(a.graph, a.tensor(FLOAT, {6, 2, 5}), a.tensor(UNSIGNED_INT, {2}), a.prog,
            a.number(4u), a.number<std::uint8_t>(3), a.number<std::uint8_t>(2), plan);
       }},
      {"uniform", [](Arguments &a) { poprand::uniform(a.graph, nullptr, 0, a.tensor(FLOAT, {3, 4}), a.type(FLOAT), 0,
         1, a.prog); }},
      {"normal with a seed", [](Arguments &a) { const auto seed = a.tensor(UNSIGNED_INT, {2});
         poprand::normal(a.graph, &seed, 0, a.tensor(FLOAT, {3, 4}), a.type(FLOAT), 0, 1, a.prog); }},
      {"truncatedNormal", [](Arguments &a) { poprand::truncatedNormal(a.graph, nullptr, 0, a.tensor(FLOAT, {3, 4}),
         a.type(FLOAT), 0, 1, 2, a.prog); }},
      {"bernoulli", [](Arguments &a) { poprand::bernoulli(a.graph, nullptr, 0, a.tensor(FLOAT, {3, 4}),
         a.type(FLOAT), 0.5, a.prog); }},
      {"dropout", [](Arguments &a) { const auto seed = a.tensor(UNSIGNED_INT, {2}); poprand::dropout(a.graph, &seed,
         0, a.tensor(FLOAT, {3, 4}), a.tensor(FLOAT, {3, 4}), 0.5, 2, a.prog); }},
      {"shapedDropout", [](Arguments &a) { poprand::shapedDropout(a.graph, nullptr, 0, a.tensor(FLOAT, {3, 4}),
         a.tensor(FLOAT, {3, 4}), 0.5, 2, a.prog); }},
      {"setSeed", [](Arguments &a) { poprand::setSeed(a.graph, a.tensor(UNSIGNED_INT, {2}), 0, a.prog); }},
  };
  return calls;
}

}  // namespace wrong
