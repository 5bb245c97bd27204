// Checks the options of products and convolutions that a program plans before it adds them: nothing is planned here.
#include <poplin/ConvPreplan.hpp>
#include <poplin/FullyConnected.hpp>

#include "poputil/library.hpp"

namespace poplin {

using namespace poputil::library;

namespace {

template <typename Product, typename Table>
void checkAll(const char *what, const std::set<Product> &products, const Table &table) {
  for (const auto &product : products) {
    const OptionFlags *options = std::get<2>(product);
    if (!options) fail("poplin::preplan", std::string("the options of a ") + what + " are a null pointer", "Pass options");
    checkOptions("poplin::preplan", *options, table);
  }
}

}  // namespace

void convolutionValidateOptions(const OptionFlags &options) {
  checkOptions("poplin::convolutionValidateOptions", options, convolution_options);
}

void matmulValidateOptions(const OptionFlags &options) {
  checkOptions("poplin::matmulValidateOptions", options, matmul_options);
}

void preplan(const std::set<ConvPlanParams> &convs, const std::set<MatMulPlanParams> &matmuls, PlanningCache &) {
  checkAll("convolution", convs, convolution_options);
  checkAll("product", matmuls, matmul_options);
}

void preplanConvolutions(const std::set<ConvPlanParams> &convs, PlanningCache &cache) { preplan(convs, {}, cache); }

void preplanConvolutions(poplar::Graph &, const std::set<ConvPlanParams> &convs, PlanningCache &cache) {
  preplan(convs, {}, cache);
}

void preplanMatMuls(const std::set<MatMulPlanParams> &matmuls, matmul::PlanningCache &cache) {
  preplan({}, matmuls, cache);
}

namespace fc {

std::vector<std::pair<MatMulParams, OptionFlags>> getMatMulPrePlanParameters(FullyConnectedParams parameters,
                                                                             OptionFlags matmulOptions,
                                                                             poplar::Type type, bool inferenceOnly) {
  const auto [groups, batch, in, out] = parameters;
  const auto product = [&](const char *pass, std::size_t rows, std::size_t depth, std::size_t columns) {
    auto options = matmulOptions;
    options.set("fullyConnectedPass", pass);
    return std::make_pair(MatMulParams{type, type, {groups, rows, depth}, {groups, depth, columns}}, options);
  };
  if (inferenceOnly) return {product("INFERENCE_FWD", batch, in, out)};
  return {product("TRAINING_FWD", batch, in, out), product("TRAINING_BWD", batch, out, in),
          product("TRAINING_WU", in, batch, out)};
}

}  // namespace fc
}  // namespace poplin
