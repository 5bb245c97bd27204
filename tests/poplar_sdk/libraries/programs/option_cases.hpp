// Cases of the options of library functions: what is refused, and what has an effect.
#pragma once

#include <poplar/exceptions.hpp>
#include <poplin/Cholesky.hpp>
#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/TriangularSolve.hpp>
#include <popnn/BatchNorm.hpp>
#include <popnn/LayerNorm.hpp>
#include <popnn/Pooling.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Gather.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/Scatter.hpp>

#include "cases.hpp"

// Calls of a function of each set of options, with the options.
inline std::vector<std::pair<std::string, std::function<void(Case &, const OptionFlags &)>>> callsWithOptions() {
  const poplin::ConvParams params(FLOAT, 1, {4, 4}, {2, 2}, 1, 1, 1);
  const auto square = [](Case &c) {
    const auto tensor = c.graph.addVariable(FLOAT, {4, 4});
    c.graph.setTileMapping(tensor, 0);
    return tensor;
  };
  const auto at = [](Case &c, const Shape &shape) {
    const auto indices = c.graph.addConstant(UNSIGNED_INT, shape, 0u);
    c.graph.setTileMapping(indices, 0);
    return indices;
  };
  return {
      {"poplin::createInput", [=](Case &c, const OptionFlags &o) { poplin::createInput(c.graph, params, {}, o); }},
      {"poplin::createWeights", [=](Case &c, const OptionFlags &o) { poplin::createWeights(c.graph, params, {}, o); }},
      {"poplin::convolutionBiasUpdate",
       [=](Case &c, const OptionFlags &o) {
         poplin::convolutionBiasUpdate(c.graph, square(c), square(c)[0], 1.0f, o, c.prog);
       }},
      {"poplin::matMul",
       [=](Case &c, const OptionFlags &o) { poplin::matMul(c.graph, square(c), square(c), c.prog, FLOAT, {}, o); }},
      {"poplin::matMulAcc",
       [=](Case &c, const OptionFlags &o) {
         poplin::matMulAcc(c.graph, square(c), 1.0f, square(c), square(c), c.prog, {}, o);
       }},
      {"poplin::createMatMulInputRHS",
       [=](Case &c, const OptionFlags &o) { poplin::createMatMulInputRHS(c.graph, FLOAT, {4, 4}, {4, 4}, {}, o); }},
      {"poplin::preArrangeMatMulInputRHS",
       [=](Case &c, const OptionFlags &o) {
         poplin::preArrangeMatMulInputRHS(c.graph, {4, 4}, square(c), c.prog, {}, o);
       }},
      {"poplin::triangularSolve",
       [=](Case &c, const OptionFlags &o) {
         poplin::triangularSolve(c.graph, square(c), square(c), true, true, false, c.prog, {}, o);
       }},
      {"poplin::choleskyInPlace",
       [=](Case &c, const OptionFlags &o) { poplin::cholesky(c.graph, square(c), true, c.prog, {}, o); }},
      {"popnn::batchNormStatistics",
       [=](Case &c, const OptionFlags &o) {
         popnn::bn::batchNormStatistics(c.graph, square(c), 0.1f, c.prog, false, false, FLOAT, {}, o);
       }},
      {"popnn::batchNormWhiten",
       [=](Case &c, const OptionFlags &o) {
         popnn::bn::batchNormWhiten(c.graph, square(c), square(c)[0], square(c)[0], c.prog, {}, o);
       }},
      {"popnn::groupNormStatistics",
       [=](Case &c, const OptionFlags &o) {
         popnn::ln::layerNormStatistics(c.graph, square(c), 0.1f, c.prog, false, false, FLOAT, {}, o);
       }},
      {"popnn::groupNormParamGradients",
       [=](Case &c, const OptionFlags &o) {
         popnn::ln::layerNormParamGradients(c.graph, square(c), square(c), c.prog, FLOAT, {}, o);
       }},
      {"popnn::pooling::pool",
       [=](Case &c, const OptionFlags &o) {
         const popnn::pooling::PoolParams pool(popnn::PoolingType::MAX, {4}, {2}, {1}, {0}, {0}, 1, 4, FLOAT);
         popnn::pooling::pool(c.graph, pool, square(c).expand({0}), c.prog, {}, o);
       }},
      {"popops::reduce",
       [=](Case &c, const OptionFlags &o) {
         popops::reduce(c.graph, square(c), {0}, popops::Operation::ADD, c.prog, {}, o);
       }},
      {"popops::scaledAddTo",
       [=](Case &c, const OptionFlags &o) { popops::scaledAddTo(c.graph, square(c), square(c), 2.0f, c.prog, {}, o); }},
      {"popops::map",
       [=](Case &c, const OptionFlags &o) { popops::add(c.graph, square(c), square(c), c.prog, {}, o); }},
      {"popops::dynamicUpdate",
       [=](Case &c, const OptionFlags &o) {
         popops::dynamicUpdate(c.graph, square(c), square(c), at(c, {1}), {0}, {4}, c.prog, {}, o);
       }},
      {"popops::createDynamicSliceOutput",
       [=](Case &c, const OptionFlags &o) {
         popops::dynamicSlice(c.graph, square(c), at(c, {1}), {0}, {1}, c.prog, {}, o);
       }},
      {"popops::gather",
       [=](Case &c, const OptionFlags &o) {
         popops::gather(c.graph, square(c), at(c, {2}), 0, c.prog, {}, {}, o);
       }},
      {"popops::scatter",
       [=](Case &c, const OptionFlags &o) {
         popops::scatter(c.graph, square(c), at(c, {1, 1}), square(c)[0].expand({0}), 1, {1}, {0}, {0}, c.prog, {}, o);
       }},
      {"popops::multiSlice",
       [=](Case &c, const OptionFlags &o) {
         popops::multiSlice(c.graph, square(c), at(c, {2, 1}), {0}, {1}, c.prog, {}, o, {});
       }},
      {"popops::createIndicesTensor",
       [=](Case &c, const OptionFlags &o) { popops::createIndicesTensor(c.graph, {0}, 3, {}, o); }},
      {"popops::embedding::plan",
       [=](Case &c, const OptionFlags &o) { popops::embedding::plan(c.graph, FLOAT, 4, 4, {2}, o); }},
  };
}

// The message of a call, after the name of the exception that Poplar's users catch.
inline void refusal(Case &c, const std::string &name, const std::function<void()> &call) {
  c.error(name, [&] {
    try {
      call();
    } catch (const poplar::invalid_option &error) {
      throw std::runtime_error(std::string("poplar::invalid_option: ") + error.what());
    }
  });
}

inline std::vector<NamedCase> optionCases() {
  std::vector<NamedCase> cases;
  cases.push_back({"unknown options", [](Case &c) {
                     for (const auto &[name, call] : callsWithOptions())
                       refusal(c, name, [&, &call = call] { call(c, {{"noSuchOption", "1"}}); });
                   }});
  cases.push_back({"option values", [](Case &c) {
                     const auto calls = callsWithOptions();
                     const auto matmul = calls.at(3).second;
                     const auto refuse = [&](const std::string &name, const std::string &value) {
                       refusal(c, name + "=" + value, [&] { matmul(c, {{name, value}}); });
                     };
                     refuse("partialType", "half");
                     refuse("partialsType", "hlaf");
                     for (const auto value : {"-0.5", "nan", "0.5x", "0", "0.25", "1", "1.5", "1e999"})
                       refuse("availableMemoryProportion", value);
                     refuse("enableFastReduce", "yes");
                     refuse("partialsType", "half");
                     refusal(c, "blockSize=large", [&] { calls.at(7).second(c, {{"blockSize", "large"}}); });
                     refusal(c, "too many tiles", [&] { calls.at(0).second(c, {{"tilesPerIPU", "17"}}); });
                     refusal(c, "no use", [&] {
                       popops::embedding::plan(c.graph, FLOAT, 4, 4, {2}, {{"usedForSlice", "false"}, {"usedForUpdate", "false"}});
                     });
                   }});
  cases.push_back({"tiles", [](Case &c) {
                     const poplin::ConvParams params(FLOAT, 1, {8, 8}, {2, 2}, 8, 4, 1);
                     std::vector<double> used;
                     for (const auto &options : {OptionFlags{}, OptionFlags{{"tilesPerIPU", "3"}, {"numIPUs", "1"}}}) {
                       const auto mapping = c.graph.getTileMapping(poplin::createInput(c.graph, params, {}, options));
                       double tiles = 0;
                       for (const auto &intervals : mapping) tiles += !intervals.empty();
                       used.push_back(tiles);
                     }
                     c.output("used", c.data("given", INT, {2}, used));
                   }});
  // Lookups of a table of 5 rows: inside, after the last, far outside.
  for (const auto &[name, options] : std::vector<std::pair<std::string, OptionFlags>>{
           {"plain", {}},
           {"remap", {{"remapOutOfBoundIndices", "true"}}},
           {"padding", {{"paddingIndexUsed", "true"}}},
           {"both", {{"remapOutOfBoundIndices", "true"}, {"paddingIndexUsed", "true"}}}})
    cases.push_back({"outside " + name, [options = options](Case &c) {
                       const auto t = c.input("t", FLOAT, {5, 3}), s = c.input("s", FLOAT, {3, 1, 3});
                       const auto at = c.data("at", UNSIGNED_INT, {3}, {2, 5, 9});
                       const auto column = at.expand({1}), scale = c.data("scale", FLOAT, {}, {1});
                       const auto keep = [&](const std::string &key) {
                         const auto copy = c.graph.clone(t);
                         c.prog.add(program::Copy(t, copy));
                         c.output(key, copy);
                         return copy;
                       };
                       c.output("slices", popops::multiSlice(c.graph, t, column, {0}, {1}, c.prog, {}, options, {}));
                       popops::multiUpdateAdd(c.graph, keep("added"), s, column, scale, {0}, {1}, c.prog, {}, options, {});
                       const auto windows = popops::gather(c.graph, t, column, 1, {1}, {1, 3}, {0}, {0}, c.prog, {}, options);
                       c.output("windows", windows);
                       popops::scatter(c.graph, keep("scattered"), column, s.squeeze({1}), 1, {1}, {0}, {0}, c.prog, {}, options);
                       c.output("last", popops::dynamicSlice(c.graph, t, at.slice(1, 2), {0}, {1}, c.prog, {}, options));
                       popops::dynamicUpdate(c.graph, keep("updated"), s[0], at.slice(1, 2), {0}, {1}, c.prog, {}, options);
                     }});
  cases.push_back({"validated", [](Case &c) {
                     const auto t = c.graph.addVariable(FLOAT, {5, 3});
                     c.graph.setTileMapping(t, 0);
                     const OptionFlags validating{{"validateIndices", "true"}};
                     const auto plan = popops::embedding::plan(c.graph, FLOAT, 5, 3, {2}, validating);
                     const auto lookup = [&](const popops::SlicePlan &plan, unsigned index, const OptionFlags &options) {
                       const auto at = c.graph.addConstant(UNSIGNED_INT, {2, 1}, ArrayRef<unsigned>({4u, index}));
                       c.graph.setTileMapping(at, 0);
                       Sequence prog;
                       popops::multiSlice(c.graph, t, at, {0}, {1}, prog, plan, options, {});
                       Engine engine(c.graph, prog);
                       engine.load(c.device);
                       engine.run(0);
                     };
                     const OptionFlags padded{{"paddingIndexUsed", "true"}}, remapped{{"remapOutOfBoundIndices", "true"}};
                     c.error("plan", [&] { lookup(plan, 5, {}); });
                     c.error("option", [&] { lookup({}, 6, validating); });
                     c.error("inside", [&] { lookup(plan, 3, {}); });
                     c.error("not validated", [&] { lookup({}, 5, {}); });
                     c.error("padding", [&] { lookup(plan, 5, padded); });
                     c.error("remapped", [&] { lookup(plan, 7, remapped); });
                   }});
  return cases;
}
