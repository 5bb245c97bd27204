// Prints halves of floats and back, traces spans and points, and plans products.
#include <popfloat/experimental/CastToHalf.hpp>
#include <poplin/ConvPreplan.hpp>
#include <poplin/FullyConnected.hpp>
#include <pvti/pvti.hpp>

#include <iostream>
#include <thread>

// The products of a fully connected layer by pass; an unknown option that is planned is refused.
void plan() {
  const auto target = poplar::Target::createIPUTarget(1, 4, "ipu2");
  poplin::PlanningCache cache;
  std::set<poplin::MatMulPlanParams> products;
  const auto planned = poplin::fc::getMatMulPrePlanParameters({2, 3, 4, 5}, {}, poplar::HALF, false);
  for (const auto &[product, options] : planned) {
    products.emplace(&target, product, &options);
    std::cout << "product " << options.at("fullyConnectedPass");
    for (const auto &shape : {product.aShape, product.bShape})
      for (const auto size : shape) std::cout << ' ' << size;
    std::cout << '\n';
  }
  poplin::preplan({}, products, cache);
  const poplar::OptionFlags wrong{{"plan", "quickly"}};
  try {
    poplin::preplan({{&target, poplin::ConvParams(poplar::FLOAT, 1, {4}, {1}, 1, 1, 1), &wrong}}, products, cache);
  } catch (const poplar::invalid_option &error) {
    std::cout << "refused " << error.what() << '\n';
  }
}

int main() {
  plan();
  using popfloat::experimental::halfToSingle;
  using popfloat::experimental::singleToHalf;
  for (const float value : {0.1f, -2.5f, 65504.f, 70000.f, -1e9f, 6e-8f, 1e-9f}) {
    const auto half = singleToHalf(value);
    std::cout << half << ' ' << halfToSingle(half) << ' ' << singleToHalf(value, true) << '\n';
  }
  pvti::TraceChannel channel = {"my channel"}, off("off", false);
  std::cout << "traced " << pvti::checkTraceChannel(&channel) << pvti::checkTraceChannel(&off) << '\n';
  {
    const pvti::Tracepoint span(&channel, "a \"span\"");
    pvti::Tracepoint::begin(&channel, "part");
    std::thread([&] { pvti::Tracepoint::event(&channel, "moment"); }).join();
    pvti::Tracepoint::end(&channel, "part");
    const pvti::Tracepoint not_recorded(&off, "off");
  }
  pvti::Graph plot("Throughput", "paths/sec");
  plot.addSeries("Samples/sec").addPoint(2.5);
  std::cout << "file " << pvti::getCurrentTraceFilename() << '\n';
}
