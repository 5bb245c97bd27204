// Prints halves of floats and back, and traces spans and points.
#include <popfloat/experimental/CastToHalf.hpp>
#include <pvti/pvti.hpp>

#include <iostream>
#include <thread>

int main() {
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
