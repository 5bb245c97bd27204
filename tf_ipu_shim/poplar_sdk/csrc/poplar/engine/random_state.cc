// Reads and writes the random generators' state; most calls that control the floating-point unit throw.
#include <poplar/CSRFunctions.hpp>
#include <poplar/RandomSeed.hpp>
#include <poplar/detail/kernel.hpp>
#include <poplar/detail/random_state.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>

namespace poplar {

namespace detail {

namespace {
constexpr unsigned words_per_worker = 4;
}  // namespace

RandomState& RandomState::ofProcess() {
  static RandomState state;
  return state;
}

void RandomState::set(std::uint64_t state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_ = state;
  written_.clear();
}

std::uint64_t RandomState::state() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

std::uint64_t RandomState::draw() {
  const std::lock_guard<std::mutex> lock(mutex_);
  written_.clear();
  return mixBits(state_ += randomIncrement);
}

std::vector<std::uint32_t> RandomState::derive(std::uint64_t state, std::size_t count) {
  std::vector<std::uint32_t> words;
  for (std::size_t i = 0; i != count; ++i)
    words.push_back(static_cast<std::uint32_t>(i < 2 ? state >> (32 * i) : mixBits(state + randomIncrement * i)));
  return words;
}

std::vector<std::uint32_t> RandomState::words(std::size_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return written_.size() == count ? written_ : derive(state_, count);
}

void RandomState::setWords(const std::uint32_t* words, std::size_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  written_.assign(words, words + count);
  state_ = count < 2 ? 0 : words[0] | static_cast<std::uint64_t>(words[1]) << 32;
  if (derive(state_, count) == written_) return;
  for (std::size_t i = 0; i != count; ++i) state_ = mixBits(state_ + randomIncrement + words[i]);
}

}  // namespace detail

Tensor getHwSeeds(Graph& graph, program::Sequence& program, const DebugContext& context) {
  const auto& target = graph.getTarget();
  const Tensor seeds = graph.addVariable(
      UNSIGNED_INT, {target.getNumTiles(), target.getNumWorkerContexts(), detail::words_per_worker}, context);
  for (unsigned tile = 0; tile < target.getNumTiles(); ++tile) graph.setTileMapping(seeds[tile], tile);
  const std::size_t count = seeds.numElements();
  const auto read = detail::Kernel::of([](const detail::KernelArguments& arguments, const auto& count) {
    const auto words = detail::RandomState::ofProcess().words(count);
    std::copy(words.begin(), words.end(), static_cast<std::uint32_t*>(arguments.outputs[0]));
  }, count);
  detail::addKernel(graph, program, {context, "getHwSeeds"}, {}, {seeds}, read);
  return seeds;
}

void setHwSeeds(Graph& graph, const Tensor& seeds, program::Sequence& program, const DebugContext& context) {
  const auto& target = graph.getTarget();
  const std::vector<std::size_t> expected{target.getNumTiles(), target.getNumWorkerContexts(), detail::words_per_worker};
  if (seeds.elementType() != UNSIGNED_INT || seeds.shape() != expected)
    throw poplar_error("setHwSeeds failed: the seeds have the shape " + seeds.shapeToString() + " and the type " +
                       seeds.elementType().toString().str() + "; expected unsigned int {" +
                       std::to_string(expected[0]) + "," + std::to_string(expected[1]) + "," +
                       std::to_string(expected[2]) + "}. Pass a tensor of getHwSeeds.");
  // The copy that the kernel writes keeps the step in the program.
  const Tensor used = graph.clone(seeds, {context, "seeds"});
  const std::size_t count = seeds.numElements();
  detail::addKernel(graph, program, {context, "setHwSeeds"}, {seeds}, {used},
                    detail::Kernel::of([](const detail::KernelArguments& arguments, const auto& count) {
                      const auto* words = static_cast<const std::uint32_t*>(arguments.inputs[0]);
                      std::copy_n(words, count, static_cast<std::uint32_t*>(arguments.outputs[0]));
                      detail::RandomState::ofProcess().setWords(words, count);
                    }, count));
}

namespace {

[[noreturn]] void refuse(const char* function, const char* what) {
  throw poplar_error(std::string(function) + " failed: " + what +
                     " is not supported: half is rounded to the nearest value and overflows to infinity, and exceptions are "
                     "of a whole engine. Leave the call out, or set debug.floatPointOpException.");
}

}  // namespace

void setFloatingPointBehaviour(Graph&, program::Sequence&, const FloatingPointBehaviour&, const DebugContext&) {
  refuse("setFloatingPointBehaviour", "control of exceptions and overflow");
}

void setFloatingPointBehaviour(Graph&, program::Sequence&, const Tensor&, const DebugContext&) {
  refuse("setFloatingPointBehaviour", "control of exceptions and overflow");
}

Tensor getAndModifyFloatingPointBehaviour(Graph&, program::Sequence&, const FloatingPointBehaviour&,
                                          const FloatingPointBehaviour&, const DebugContext&) {
  refuse("getAndModifyFloatingPointBehaviour", "control of exceptions and overflow");
}

void setStochasticRounding(Graph&, program::Sequence&, bool enable, const DebugContext&) {
  if (enable) refuse("setStochasticRounding", "stochastic rounding");
}

}  // namespace poplar
