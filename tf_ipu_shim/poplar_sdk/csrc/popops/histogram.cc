// Counts the elements of float or half tensors between given levels (histograms).
#include <popops/GatherStatistics.hpp>
#include <poplar/exceptions.hpp>

#include "poputil/library.hpp"

namespace popops {

using namespace poputil::library;

namespace {

void addHistogram(poplar::Graph &graph, const Tensor &input, const Tensor &output, bool update, const Tensor &levels,
                  bool absolute, Sequence &prog, const poplar::DebugContext &debugContext) {
  const auto type = input.elementType(), out_type = output.elementType();
  if (levels.rank() != 1 || levels.elementType() != type || !poputil::detail::isFloating(type))
    fail("popops::histogram", "the input is " + poputil::detail::typeName(type) + " and the levels " +
         poputil::detail::typeName(levels.elementType()) + " of the shape " +
         poputil::detail::describeShape(levels.shape()), "Pass a vector of levels of the input's type, float or half");
  if (output.shape() != Shape{levels.numElements() + 1} || (out_type != poplar::FLOAT && out_type != poplar::UNSIGNED_INT))
    fail("popops::histogram", "the output has the shape " + poputil::detail::describeShape(output.shape()) +
         " and the type " + poputil::detail::typeName(out_type),
         "Pass " + std::to_string(levels.numElements() + 1) + " elements of type unsigned int or float");
  const auto count = input.numElements(), bounds = levels.numElements();
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "histogram"}, {input.flatten(), levels}, {output},
      Kernel::of([](const KernelArguments &arguments, const auto &type, const auto &count, const auto &bounds,
                    const auto &absolute, const auto &out_type, const auto &update) {
        const auto values = poputil::detail::readFloats(type, arguments.inputs[0], count);
        const auto edges = poputil::detail::readFloats(type, arguments.inputs[1], bounds);
        std::vector<std::uint32_t> found(bounds + 1);
        for (const float value : values) {
          const float used = absolute ? std::fabs(value) : value;
          ++found[std::upper_bound(edges.begin(), edges.end(), used) - edges.begin()];
        }
        poputil::detail::visitType(out_type, [&](auto tag) {
          using T = typename decltype(tag)::type;
          auto *out = static_cast<T *>(arguments.outputs[0]);
          for (std::size_t i = 0; i != found.size(); ++i)
            poputil::detail::store(out[i], found[i] + (update ? poputil::detail::load(out[i]) : 0));
        });
      }, type, count, bounds, absolute, out_type, update));
}

}  // namespace

Tensor histogram(poplar::Graph &graph, const Tensor &input, const Tensor &levels, bool absoluteOfInput, Sequence &prog,
                 const poplar::DebugContext &debugContext, const OptionFlags &options) {
  checkOptions("popops::histogram", options, histogram_options);
  const bool floating = isSet(options, "useFloatArithmetic");
  if (floating && isSet(options, "useFloatArithmeticWithUnsignedIntOutput"))
    throw poplar::invalid_option("popops::histogram failed: useFloatArithmetic and "
                                 "useFloatArithmeticWithUnsignedIntOutput are true. Leave one of them out.");
  const auto out = poputil::detail::createLinear(graph, floating ? poplar::FLOAT : poplar::UNSIGNED_INT,
                                                 {levels.numElements() + 1}, {debugContext, "histogram"});
  addHistogram(graph, input, out, false, levels, absoluteOfInput, prog, debugContext);
  return out;
}

void histogram(poplar::Graph &graph, const Tensor &input, Tensor &output, bool updateOutput, const Tensor &levels,
               bool absoluteOfInput, Sequence &prog, const poplar::DebugContext &debugContext,
               const OptionFlags &options) {
  checkOptions("popops::histogram", options, histogram_options);
  if (isSet(options, "useFloatArithmetic"))
    throw poplar::invalid_option("popops::histogram failed: useFloatArithmetic is true for an output of the caller. "
                                 "Leave it out: the output's type decides.");
  if (isSet(options, "useFloatArithmeticWithUnsignedIntOutput") && output.elementType() != poplar::UNSIGNED_INT)
    fail("popops::histogram", "useFloatArithmeticWithUnsignedIntOutput is true for an output of type " +
         poputil::detail::typeName(output.elementType()), "Pass an output of type unsigned int");
  addHistogram(graph, input, output, updateOutput, levels, absoluteOfInput, prog, debugContext);
}

}  // namespace popops
