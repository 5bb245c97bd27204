// Random tensors from a hash of the seed and each element's index.
#include <poplar/detail/random_state.hpp>
#include <popops/ElementWise.hpp>
#include <poprand/RandomGen.hpp>
#include <poputil/Broadcast.hpp>

#include "poputil/library.hpp"

namespace poprand {

using namespace poputil::library;

namespace {

using poplar::detail::mixBits;

constexpr std::uint64_t GOLDEN = 0x9e3779b97f4a7c15;  // the increment of the generator "splitmix64"

std::uint64_t combine(const void *seed, std::uint32_t modifier) {
  const auto *words = static_cast<const std::uint32_t *>(seed);
  const auto both = (static_cast<std::uint64_t>(words[1]) << 32) | words[0];
  return mixBits(both + GOLDEN) ^ mixBits(modifier * GOLDEN + 1);
}

// The random numbers of one element.
class Stream {
 public:
  Stream(std::uint64_t key, std::size_t element) : state_(mixBits(key + GOLDEN * (2 * element + 1))) {}

  std::uint64_t bits() { return mixBits(state_ += GOLDEN); }
  // In [0, 1), or in (0, 1] for a logarithm.
  double real() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double positive() { return 1 - real(); }
  double normal() { return std::sqrt(-2 * std::log(positive())) * std::cos(6.283185307179586 * real()); }

 private:
  std::uint64_t state_;
};

void checkSeed(const Tensor *seed) {
  if (seed == nullptr) return;
  const poplar::Type type = seed->elementType();
  if (seed->numElements() != 2 || poplar::detail::typeSize(type) != 4 || type.isFloatingPoint())
    fail("poprand", "the seed has the shape " + poputil::detail::describeShape(seed->shape()) + " and the type " +
         poputil::detail::typeName(type), "Pass two elements of type unsigned int");
}

void checkType(const poplar::Type &type, bool integers) {
  if (!poputil::detail::isFloating(type) && !(integers && type == poplar::INT))
    fail("poprand", "the type is " + poputil::detail::typeName(type) + "; expected float" +
         (integers ? ", half or int" : " or half"), "Cast the result");
}

// A distribution, and the numbers that it has: which ones depends on it.
struct Draw {
  double (*element)(Stream &stream, const Draw &draw);
  double a, b = 0, c = 0;
  bool integer = false, half = false;
};
POPLAR_FIELDS(Draw, part.element, part.a, part.b, part.c, part.integer, part.half)

// Adds a program that draws each element of `out`, given its stream.
void addDraws(poplar::Graph &graph, const Tensor *seed, std::uint32_t modifier, const Tensor &out, Sequence &prog,
              const poplar::DebugContext &debugContext, Draw draw) {
  draw.integer = out.elementType() == poplar::INT;
  draw.half = out.elementType() == poplar::HALF;
  checkSeed(seed);
  const auto type = out.elementType();
  const auto count = out.numElements();
  const auto kernel = Kernel::of([](const KernelArguments &arguments, const auto &type, const auto &count,
                                    const auto &modifier, const auto &draw, const auto &seeded) {
    const auto key = seeded ? combine(arguments.inputs[0], modifier) : poplar::detail::RandomState::ofProcess().draw();
    poputil::detail::visitType(type, [&](auto tag) {
      auto *elements = static_cast<typename decltype(tag)::type *>(arguments.outputs[0]);
      poplar::detail::parallelFor(count, 8192, [&](std::size_t begin, std::size_t end) {
        for (; begin != end; ++begin) {
          Stream stream(key, begin);
          poputil::detail::store(elements[begin], draw.element(stream, draw));
        }
      });
    });
  }, type, count, modifier, draw, seed != nullptr);
  poputil::detail::addKernelIfAny(graph, prog, debugContext,
                                  seed != nullptr ? std::vector<Tensor>{seed->flatten()} : std::vector<Tensor>{}, {out},
                                  kernel);
}

Tensor createLike(poplar::Graph &graph, const poplar::Type &type, const Tensor &reference,
                  const poplar::DebugContext &debugContext) {
  return graph.clone(type, reference, debugContext);
}

// A float that rounds to a value of the type within the bounds.
float within(double value, double lowest, double highest, bool half) {
  auto result = static_cast<float>(std::clamp(value, lowest, highest));
  if (!half) return result;
  const float rounded = poputil::detail::roundToHalf(result);
  if (rounded >= lowest && rounded <= highest) return rounded;
  // The neighbour on the other side of the bound.
  const float spacing = std::max(std::abs(rounded) * 0x1p-10f, 0x1p-24f);
  return poputil::detail::roundToHalf(rounded < lowest ? rounded + spacing : rounded - spacing);
}

}  // namespace

Tensor dropout(poplar::Graph &graph, const Tensor *seed, const uint32_t seedModifier, const Tensor &input,
               const Tensor &reference, double keepProbability, double scale, Sequence &prog,
               const poplar::DebugContext &debugContext) {
  return dropout(graph, seed, seedModifier, input, reference, keepProbability, scale, true, prog, debugContext);
}

Tensor dropout(poplar::Graph &graph, const Tensor *seed, const uint32_t seedModifier, const Tensor &input,
               const Tensor &reference, double keepProbability, double scale, bool outputClonesRef, Sequence &prog,
               const poplar::DebugContext &debugContext) {
  if (input.shape() != reference.shape())
    fail("poprand::dropout", "the input has the shape " + poputil::detail::describeShape(input.shape()) +
         " and the reference " + poputil::detail::describeShape(reference.shape()) + "; expected the same",
         "Call shapedDropout");
  const poplar::DebugContext name{debugContext, "dropout"};
  const auto out = createLike(graph, input.elementType(), outputClonesRef ? reference : input, name);
  const auto mask = bernoulli(graph, seed, seedModifier, reference, poplar::FLOAT, keepProbability, prog, name);
  using namespace popops::expr;
  const auto kept = Mul(popops::expr::Cast(_1, poplar::FLOAT), Const(static_cast<float>(scale)));
  popops::mapWithOutput(graph, popops::expr::Cast(Select(kept, Const(0.0f), Gt(_2, Const(0.5f))), input.elementType()),
                        {input, mask}, out, prog, name);
  return out;
}

Tensor shapedDropout(poplar::Graph &graph, const Tensor *seed, const uint32_t seedModifier, const Tensor &input,
                     const Tensor &reference, double keepProbability, double scale, Sequence &prog,
                     const poplar::DebugContext &debugContext) {
  const poplar::DebugContext name{debugContext, "shapedDropout"};
  auto mask = bernoulli(graph, seed, seedModifier, reference, poplar::FLOAT, keepProbability, prog, name);
  poputil::broadcastToMatch(mask, input.shape());
  using namespace popops::expr;
  const auto kept = Mul(popops::expr::Cast(_1, poplar::FLOAT), Const(static_cast<float>(scale)));
  return popops::map(graph, popops::expr::Cast(Select(kept, Const(0.0f), Gt(_2, Const(0.5f))), input.elementType()),
                     {input, mask}, prog, name);
}

Tensor uniform(poplar::Graph &graph, const Tensor *seed, uint32_t seedModifier, const Tensor &reference,
               const poplar::Type &outType, double minVal, double maxVal, Sequence &prog,
               const poplar::DebugContext &debugContext) {
  checkType(outType, true);
  if (!(minVal <= maxVal)) fail("poprand::uniform", "minVal is larger than maxVal", "Exchange them");
  const auto out = createLike(graph, outType, reference, {debugContext, "uniform"});
  const auto element = [](Stream &stream, const Draw &draw) {
    const double low = draw.a, high = draw.b;
    if (!draw.integer) return static_cast<double>(within(low + stream.real() * (high - low), low, high, draw.half));
    const double lowest = std::ceil(low), count = std::floor(high) - lowest + 1;
    return lowest + std::floor(stream.real() * count);
  };
  addDraws(graph, seed, seedModifier, out, prog, {debugContext, "uniform"}, {element, minVal, maxVal});
  return out;
}

Tensor logUniform(poplar::Graph &graph, const Tensor *seed, uint32_t seedModifier, const Tensor &reference,
                  const poplar::Type &outType, double minVal, double maxVal, Sequence &prog, double,
                  const poplar::DebugContext &debugContext) {
  checkType(outType, true);
  if (!(minVal > 0 && minVal <= maxVal))
    fail("poprand::logUniform", "the bounds are not positive or not in order", "Pass 0 < minVal <= maxVal");
  // The base of the logarithm does not change the distribution.
  const auto out = createLike(graph, outType, reference, {debugContext, "logUniform"});
  const auto element = [](Stream &stream, const Draw &draw) {
    const double low = std::log(draw.a), high = std::log(draw.b);
    const double value = std::exp(low + stream.real() * (high - low));
    return draw.integer ? std::clamp(std::floor(value), std::ceil(draw.a), std::floor(draw.b))
                        : static_cast<double>(within(value, draw.a, draw.b, draw.half));
  };
  addDraws(graph, seed, seedModifier, out, prog, {debugContext, "logUniform"}, {element, minVal, maxVal});
  return out;
}

Tensor bernoulli(poplar::Graph &graph, const Tensor *seed, uint32_t seedModifier, const Tensor &reference,
                 const poplar::Type &outType, double prob, Sequence &prog, const poplar::DebugContext &debugContext) {
  checkType(outType, true);
  if (!(prob >= 0 && prob <= 1))
    fail("poprand::bernoulli", "the probability is " + std::to_string(prob), "Pass a value from 0 to 1");
  const auto out = createLike(graph, outType, reference, {debugContext, "bernoulli"});
  const auto element = [](Stream &stream, const Draw &draw) { return stream.real() < draw.a ? 1.0 : 0.0; };
  addDraws(graph, seed, seedModifier, out, prog, {debugContext, "bernoulli"}, {element, prob});
  return out;
}

Tensor normal(poplar::Graph &graph, const Tensor *seed, uint32_t seedModifier, const Tensor &reference,
              const poplar::Type &outType, double mean, double stdDev, Sequence &prog,
              const poplar::DebugContext &debugContext) {
  checkType(outType, false);
  const auto out = createLike(graph, outType, reference, {debugContext, "normal"});
  const auto element = [](Stream &stream, const Draw &draw) { return draw.a + draw.b * stream.normal(); };
  addDraws(graph, seed, seedModifier, out, prog, {debugContext, "normal"}, {element, mean, stdDev});
  return out;
}

Tensor truncatedNormal(poplar::Graph &graph, const Tensor *seed, uint32_t seedModifier, const Tensor &reference,
                       const poplar::Type &outType, double mean, double stdDev, double alpha, Sequence &prog,
                       const poplar::DebugContext &debugContext) {
  checkType(outType, false);
  if (!(alpha >= 0.1))
    fail("poprand::truncatedNormal", "alpha is " + std::to_string(alpha), "Pass at least 0.1");
  const auto out = createLike(graph, outType, reference, {debugContext, "truncatedNormal"});
  const auto element = [](Stream &stream, const Draw &draw) {
    double value = stream.normal();
    while (std::abs(value) > draw.c) value = stream.normal();
    return draw.a + draw.b * value;
  };
  addDraws(graph, seed, seedModifier, out, prog, {debugContext, "truncatedNormal"}, {element, mean, stdDev, alpha});
  return out;
}

void setSeed(poplar::Graph &graph, const Tensor &masterSeed, uint32_t seedModifier, Sequence &prog,
             const poplar::DebugContext &debugContext) {
  checkSeed(&masterSeed);
  // The copy of the seed that the kernel writes keeps the step in the program.
  const auto used = graph.clone(masterSeed, {debugContext, "seed"});
  poplar::detail::addKernel(graph, prog, {debugContext, "setSeed"}, {masterSeed}, {used},
                            Kernel::of([](const KernelArguments &arguments, const auto &seedModifier) {
                              std::memcpy(arguments.outputs[0], arguments.inputs[0], 2 * sizeof(std::uint32_t));
                              poplar::detail::RandomState::ofProcess().set(combine(arguments.inputs[0], seedModifier));
                            }, seedModifier));
}

}  // namespace poprand
