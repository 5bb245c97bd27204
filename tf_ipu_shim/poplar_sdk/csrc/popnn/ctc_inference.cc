// CTC beam search. A beam is a label prefix with the logarithm of its probability, in double.
#include <map>
#include <popnn/CTCInference.hpp>
#include <popnn/LogSoftmax.hpp>
#include <sstream>
#include <utility>

#include "popnn/ctc.hpp"

namespace popnn::ctc_infer {

using namespace poputil::library;
using ctc::logAdd;
using ctc::NONE;

namespace {

struct Search {
  std::size_t steps, batch, classes;
  std::uint32_t blank;
  std::size_t width, paths;
};

using Label = std::vector<std::uint32_t>;

// The probability of all paths to a label so far: those that end with a blank, and the others.
struct Beam {
  double blank = NONE, other = NONE;
  double all() const { return logAdd(blank, other); }
};
using Beams = std::map<Label, Beam>;

// The beams after one more step with these logarithms of probabilities, without those that cannot be.
Beams extended(const Search &search, const Beams &beams, const float *logs) {
  Beams result;
  const auto add = [](double &sum, double log) { sum = logAdd(sum, log); };
  for (const auto &[label, beam] : beams) {
    if (logs[search.blank] > NONE) add(result[label].blank, beam.all() + logs[search.blank]);
    for (std::uint32_t symbol = 0; symbol != search.classes; ++symbol) {
      if (symbol == search.blank || !(logs[symbol] > NONE)) continue;
      const bool repeated = !label.empty() && label.back() == symbol;
      if (repeated && beam.other > NONE) add(result[label].other, beam.other + logs[symbol]);
      const double before = repeated ? beam.blank : beam.all();
      if (!(before > NONE)) continue;
      Label longer = label;
      longer.push_back(symbol);
      add(result[longer].other, before + logs[symbol]);
    }
  }
  return result;
}

// The likeliest beams, likeliest first.
std::vector<std::pair<Label, Beam>> likeliest(const Beams &beams, std::size_t count) {
  std::vector<std::pair<Label, Beam>> sorted(beams.begin(), beams.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto &a, const auto &b) { return a.second.all() > b.second.all(); });
  sorted.resize(std::min(count, sorted.size()));
  return sorted;
}

Search checked(const std::string &function, const Tensor &data, const Tensor &lengths, unsigned blankClass,
               unsigned width, unsigned paths, const OptionFlags &options) {
  checkOptions(function.c_str(), options, ctc_plan_options);
  if (data.rank() != 3 || !poputil::detail::isFloating(data.elementType()) || blankClass >= data.dim(2))
    fail(function, "the data has the shape " + poputil::detail::describeShape(data.shape()) + " and the type " +
         poputil::detail::typeName(data.elementType()) + ", and the blank class is " + std::to_string(blankClass),
         "Pass data of float or half {steps, batch, classes}, and a class");
  if (paths == 0 || paths > width)
    fail(function, std::to_string(paths) + " paths are asked for, of " + std::to_string(width) + " beams",
         "Pass at least as many beams as paths");
  ctc::checkLengths(function, "the data's lengths", lengths, {data.dim(1)});
  return {data.dim(0), data.dim(1), data.dim(2), blankClass, width, paths};
}

// Results of one sequence, for all its paths.
struct Found {
  float *costs;
  std::uint32_t *lengths, *labels;
};

void searchOne(const Search &search, const float *logs, std::size_t sequence, std::size_t steps, const Found &found) {
  Beams beams{{Label(), Beam{0, NONE}}};
  for (std::size_t step = 0; step != steps; ++step) {
    const auto kept = likeliest(
        extended(search, beams, logs + (step * search.batch + sequence) * search.classes), search.width);
    beams = Beams(kept.begin(), kept.end());
  }
  const auto paths = likeliest(beams, search.paths);
  for (std::size_t i = 0; i != paths.size(); ++i) {
    const auto &[label, beam] = paths[i];
    found.costs[i] = static_cast<float>(-beam.all());
    found.lengths[i] = static_cast<std::uint32_t>(label.size());
    std::copy(label.begin(), label.end(), found.labels + i * search.steps);
  }
}

std::tuple<Tensor, Tensor, Tensor> addSearch(const std::string &function, poplar::Graph &graph, const Tensor &logProbs,
                                             const Tensor &dataLengths, const Search &search, Sequence &prog,
                                             const poplar::DebugContext &debugContext) {
  const auto type = logProbs.elementType();
  const Shape shape{search.batch, search.paths};
  const auto costs = poputil::detail::createLinear(graph, type, shape, {debugContext, "labelProbs"});
  const auto lengths =
      poputil::detail::createLinear(graph, poplar::UNSIGNED_INT, shape, {debugContext, "labelLengths"});
  const auto labels = poputil::detail::createLinear(
      graph, poplar::UNSIGNED_INT, {search.batch, search.paths, search.steps}, {debugContext, "decodedLabels"});
  poputil::detail::addKernelIfAny(
      graph, prog, debugContext, {logProbs, dataLengths}, {costs, lengths, labels},
      Kernel::of([](const KernelArguments &arguments, const auto &function, const auto &search, const auto &type) {
        const auto count = search.batch * search.paths;
        const auto logs =
            poputil::detail::readFloats(type, arguments.inputs[0], search.steps * search.batch * search.classes);
        const auto *steps = static_cast<const std::uint32_t *>(arguments.inputs[1]);
        std::vector<float> found(count, std::numeric_limits<float>::infinity());
        auto *lengths_found = static_cast<std::uint32_t *>(arguments.outputs[1]);
        auto *labels_found = static_cast<std::uint32_t *>(arguments.outputs[2]);
        std::fill_n(lengths_found, count, 0);
        std::fill_n(labels_found, count * search.steps, search.blank);
        for (std::size_t i = 0; i != search.batch; ++i)
          if (steps[i] > search.steps)
            fail(function, "sequence " + std::to_string(i) + " has " + std::to_string(steps[i]) +
                 " steps; expected at most " + std::to_string(search.steps), "Pass lengths that fit the data");
        poplar::detail::parallelFor(search.batch, 1, [&](std::size_t begin, std::size_t end) {
          for (; begin != end; ++begin) {
            const auto first = begin * search.paths;
            searchOne(search, logs.data(), begin, steps[begin],
                      {found.data() + first, lengths_found + first, labels_found + first * search.steps});
          }
        });
        poputil::detail::writeFloats(type, found.data(), arguments.outputs[0], count);
      }, function, search, type));
  return {costs, lengths, labels};
}

}  // namespace

ctc::Plan plan(const poplar::Graph &, const poplar::Type &inType, unsigned batchSize, unsigned maxTime,
               unsigned numClasses, unsigned beamwidth, const OptionFlags &options) {
  checkOptions("popnn::ctc_infer::plan", options, ctc_plan_options);
  std::ostringstream text;
  text << "{in=" << poputil::detail::typeName(inType) << ", batch=" << batchSize << ", steps=" << maxTime
       << ", classes=" << numClasses << ", beams=" << beamwidth << "}";
  return ctc::Plan(text.str());
}

Tensor createDataInput(poplar::Graph &graph, const poplar::Type &type, const std::size_t batchSize,
                       const std::size_t maxTime, const std::size_t numClasses, const ctc::Plan &,
                       const poplar::DebugContext &debugContext) {
  return poputil::detail::createLinear(graph, type, {maxTime, batchSize, numClasses}, debugContext);
}

// The functions on logarithms of probabilities, and on logits.
#define BEAM_SEARCH(function, LOGS)                                                                                  \
  std::tuple<Tensor, Tensor, Tensor> function(poplar::Graph &graph, const Tensor &data, const Tensor &dataLengths,   \
                                              Sequence &prog, unsigned blankClass, unsigned beamwidth,               \
                                              unsigned topPaths, const ctc::Plan &,                                  \
                                              const poplar::DebugContext &debugContext, const OptionFlags &options) { \
    const std::string name = "popnn::ctc_infer::" #function;                                                         \
    const auto search = checked(name, data, dataLengths, blankClass, beamwidth, topPaths, options);                  \
    return addSearch(name, graph, LOGS, dataLengths, search, prog, {debugContext, "ctcBeamSearch"});                 \
  }

BEAM_SEARCH(beamSearchDecoderLogProbabilities, data)
BEAM_SEARCH(beamSearchDecoderLogits, logSoftmax(graph, data, prog, debugContext))
#undef BEAM_SEARCH

}  // namespace popnn::ctc_infer
