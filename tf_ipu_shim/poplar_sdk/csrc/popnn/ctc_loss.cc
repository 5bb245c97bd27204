// CTC losses by the forward-backward algorithm, on logarithms in double.
#include <popnn/CTCLoss.hpp>
#include <popnn/LogSoftmax.hpp>
#include <sstream>

#include "popnn/ctc.hpp"

namespace popnn::ctc {

namespace {

// The sizes of the data, and the values of the options.
struct Losses {
  std::size_t steps, batch, classes, longest;
  std::uint32_t blank;
  bool with_softmax, zero_infinity;
};

// One sequence: its logarithms of probabilities by step, and its label with a blank before and after each element.
class Paths {
 public:
  Paths(const Losses &losses, const float *logs, std::size_t sequence, std::size_t steps,
        const std::uint32_t *label, std::size_t length)
      : losses_(losses), logs_(logs + sequence * losses.classes), steps_(steps) {
    symbols_.assign(2 * length + 1, losses.blank);
    for (std::size_t i = 1; i < symbols_.size(); i += 2) symbols_[i] = label[i / 2];
    sumForwards();
  }

  double loss() const {
    if (steps_ == 0) return symbols_.size() == 1 ? 0 : -NONE;
    const double *last = forwards_.data() + (steps_ - 1) * symbols_.size();
    return -logAdd(last[symbols_.size() - 1], symbols_.size() > 1 ? last[symbols_.size() - 2] : NONE);
  }

  // Adds the probability that a path is in a class at a step to `shares`, {steps, classes}.
  void addShares(std::vector<double> &shares) const {
    const auto size = symbols_.size();
    const double all = loss();
    std::vector<double> after(size, NONE), here(size);
    for (std::size_t step = steps_; step-- > 0;) {
      for (std::size_t i = 0; i != size; ++i) {
        here[i] = step + 1 == steps_ ? (i + 2 >= size ? 0 : NONE) : sumAfter(after, step, i);
        shares[step * losses_.classes + symbols_[i]] += std::exp(forwards_[step * size + i] + here[i] + all);
      }
      after = here;
    }
  }

  std::size_t steps() const { return steps_; }
  double log(std::size_t step, std::size_t symbol) const {
    return logs_[step * losses_.batch * losses_.classes + symbol];
  }

 private:
  // Whether a path may go from place i - 2 to i: over a blank between two different elements.
  bool skips(std::size_t i) const {
    return i >= 2 && symbols_[i] != losses_.blank && symbols_[i] != symbols_[i - 2];
  }

  void sumForwards() {
    const auto size = symbols_.size();
    forwards_.assign(steps_ * size, NONE);
    for (std::size_t step = 0; step != steps_; ++step) {
      const double *before = forwards_.data() + (step == 0 ? 0 : step - 1) * size;
      for (std::size_t i = 0; i != size; ++i) {
        double sum = step == 0 ? (i < 2 ? 0 : NONE) : before[i];
        if (step != 0 && i >= 1) sum = logAdd(sum, before[i - 1]);
        if (step != 0 && skips(i)) sum = logAdd(sum, before[i - 2]);
        forwards_[step * size + i] = sum + log(step, symbols_[i]);
      }
    }
  }

  // The sum over the successors of position i in a step.
  double sumAfter(const std::vector<double> &after, std::size_t step, std::size_t i) const {
    const auto size = symbols_.size();
    double sum = after[i] + log(step + 1, symbols_[i]);
    if (i + 1 < size) sum = logAdd(sum, after[i + 1] + log(step + 1, symbols_[i + 1]));
    if (i + 2 < size && skips(i + 2)) sum = logAdd(sum, after[i + 2] + log(step + 1, symbols_[i + 2]));
    return sum;
  }

  const Losses &losses_;
  const float *logs_;
  std::size_t steps_;
  std::vector<std::size_t> symbols_;
  std::vector<double> forwards_;
};

// Throws poplibs_error for lengths that do not fit, and for elements of labels that are no class.
void checkValues(const std::string &function, const Losses &losses, const std::uint32_t *labels,
                 const std::uint32_t *steps, const std::uint32_t *lengths) {
  for (std::size_t i = 0; i != losses.batch; ++i) {
    const auto sequence = "sequence " + std::to_string(i);
    if (steps[i] > losses.steps || lengths[i] > losses.longest)
      fail(function, sequence + " has " + std::to_string(steps[i]) + " steps and a label of " +
           std::to_string(lengths[i]) + "; expected at most " + std::to_string(losses.steps) + " and " +
           std::to_string(losses.longest), "Pass lengths that fit the data and the labels");
    const auto *label = labels + i * losses.longest;
    const auto *wrong = std::find_if(label, label + lengths[i], [&](auto symbol) { return symbol >= losses.classes; });
    if (wrong != label + lengths[i])
      fail(function, "the label of " + sequence + " has the class " + std::to_string(*wrong) + "; expected at most " +
           std::to_string(losses.classes - 1), "Pass labels whose elements are classes");
  }
}

// Writes the gradient of one sequence.
void writeGradient(const Losses &losses, const Paths &paths, std::size_t sequence, std::vector<float> &gradient) {
  const bool infinite = std::isinf(paths.loss());
  if (infinite && losses.zero_infinity) return;
  std::vector<double> shares(paths.steps() * losses.classes);
  if (!infinite) paths.addShares(shares);
  for (std::size_t step = 0; step != paths.steps(); ++step)
    for (std::size_t k = 0; k != losses.classes; ++k) {
      const double share = infinite ? std::nan("") : shares[step * losses.classes + k];
      const double probability = losses.with_softmax ? std::exp(paths.log(step, k)) : 0;
      gradient[(step * losses.batch + sequence) * losses.classes + k] = static_cast<float>(probability - share);
    }
}

// The losses and, unless `gradient` is null, their gradient, from logarithms of probabilities.
Tensor addLosses(const std::string &function, poplar::Graph &graph, const poplar::Type &outType, const Tensor &logProbs,
                 const Tensor &labels, const Tensor &dataLengths, const Tensor &labelLengths, Sequence &prog,
                 unsigned blankClass, Tensor *gradient, const poplar::DebugContext &debugContext,
                 const OptionFlags &options) {
  checkOptions(function.c_str(), options, ctc_loss_options);
  const auto type = logProbs.elementType();
  if (logProbs.rank() != 3 || labels.rank() != 2 || !poputil::detail::isFloating(type) ||
      !poputil::detail::isFloating(outType) || blankClass >= logProbs.dim(2))
    fail(function, "the data has the shape " + poputil::detail::describeShape(logProbs.shape()) + ", the labels " +
         poputil::detail::describeShape(labels.shape()) + ", and the blank class is " + std::to_string(blankClass),
         "Pass data of float or half {steps, batch, classes}, labels {batch, length}, and a class");
  const Losses losses{logProbs.dim(0), logProbs.dim(1), logProbs.dim(2), labels.dim(1), blankClass,
                      valueOf(options, "includeSoftmaxGradient", "true") == "true", isSet(options, "zeroInfinity")};
  checkLengths(function, "the labels", labels, {losses.batch, losses.longest});
  checkLengths(function, "the data's lengths", dataLengths, {losses.batch});
  checkLengths(function, "the labels' lengths", labelLengths, {losses.batch});
  const auto loss = poputil::detail::createLinear(graph, outType, {losses.batch}, {debugContext, "loss"});
  std::vector<Tensor> outputs{loss};
  if (gradient != nullptr) {
    *gradient = poputil::detail::createLinear(graph, outType, logProbs.shape(), {debugContext, "gradient"});
    outputs.push_back(*gradient);
  }
  poputil::detail::addKernelIfAny(
      graph, prog, debugContext, {logProbs, labels, dataLengths, labelLengths}, outputs,
      Kernel::of([](const KernelArguments &arguments, const auto &function, const auto &losses, const auto &type,
                    const auto &outType, const auto &differentiated) {
        const auto count = losses.steps * losses.batch * losses.classes;
        const auto logs = poputil::detail::readFloats(type, arguments.inputs[0], count);
        const auto *labels = static_cast<const std::uint32_t *>(arguments.inputs[1]);
        const auto *steps = static_cast<const std::uint32_t *>(arguments.inputs[2]);
        const auto *lengths = static_cast<const std::uint32_t *>(arguments.inputs[3]);
        checkValues(function, losses, labels, steps, lengths);
        std::vector<float> values(losses.batch), gradient(differentiated ? count : 0);
        poplar::detail::parallelFor(losses.batch, 1, [&](std::size_t begin, std::size_t end) {
          for (; begin != end; ++begin) {
            const Paths paths(losses, logs.data(), begin, steps[begin], labels + begin * losses.longest, lengths[begin]);
            const bool dropped = losses.zero_infinity && std::isinf(paths.loss());
            values[begin] = dropped ? 0 : static_cast<float>(paths.loss());
            if (differentiated) writeGradient(losses, paths, begin, gradient);
          }
        });
        poputil::detail::writeFloats(outType, values.data(), arguments.outputs[0], values.size());
        if (differentiated) poputil::detail::writeFloats(outType, gradient.data(), arguments.outputs[1], count);
      }, function, losses, type, outType, gradient != nullptr));
  return loss;
}

}  // namespace

Plan plan(const poplar::Graph &, const poplar::Type &inType, const poplar::Type &outType, unsigned batchSize,
          unsigned maxTime, unsigned maxLabelLength, unsigned numClasses, const OptionFlags &options) {
  checkOptions("popnn::ctc::plan", options, ctc_plan_options);
  std::ostringstream text;
  text << "{in=" << poputil::detail::typeName(inType) << ", out=" << poputil::detail::typeName(outType)
       << ", batch=" << batchSize << ", steps=" << maxTime << ", labels=" << maxLabelLength
       << ", classes=" << numClasses << "}";
  return Plan(text.str());
}

Tensor createDataInput(poplar::Graph &graph, const poplar::Type &type, const std::size_t batchSize,
                       const std::size_t maxTime, const std::size_t numClasses, const Plan &,
                       const poplar::DebugContext &debugContext) {
  return poputil::detail::createLinear(graph, type, {maxTime, batchSize, numClasses}, debugContext);
}

Tensor createLabelsInput(poplar::Graph &graph, const poplar::Type &type, const std::size_t batchSize,
                         const std::size_t maxLabelLength, const Plan &, const poplar::DebugContext &debugContext) {
  return poputil::detail::createLinear(graph, type, {batchSize, maxLabelLength}, debugContext);
}

// The functions on logarithms of probabilities, and on logits.
#define CTC_FUNCTIONS(suffix, LOGS)                                                                                    \
  std::pair<Tensor, Tensor> calcLossAndGradient##suffix(                                                               \
      poplar::Graph &graph, const poplar::Type &outType, const Tensor &data, const Tensor &labels,                     \
      const Tensor &dataLengths, const Tensor &labelLengths, Sequence &prog, const unsigned blankClass, const Plan &,  \
      const poplar::DebugContext &debugContext, const OptionFlags &options) {                                          \
    Tensor gradient;                                                                                                   \
    const auto loss = addLosses("popnn::ctc::calcLossAndGradient" #suffix, graph, outType, LOGS, labels, dataLengths,  \
                                labelLengths, prog, blankClass, &gradient, {debugContext, "ctcLoss"}, options);        \
    return {loss, gradient};                                                                                           \
  }                                                                                                                    \
  Tensor calcCTCLoss##suffix(poplar::Graph &graph, const poplar::Type &outType, const Tensor &data,                    \
                             const Tensor &labels, const Tensor &dataLengths, const Tensor &labelLengths,              \
                             Sequence &prog, const unsigned blankClass, const Plan &,                                  \
                             const poplar::DebugContext &debugContext, const OptionFlags &options) {                   \
    return addLosses("popnn::ctc::calcCTCLoss" #suffix, graph, outType, LOGS, labels, dataLengths, labelLengths, prog, \
                     blankClass, nullptr, {debugContext, "ctcLoss"}, options);                                         \
  }

CTC_FUNCTIONS(LogProbabilities, data)
CTC_FUNCTIONS(Logits, logSoftmax(graph, data, prog, debugContext))
#undef CTC_FUNCTIONS

}  // namespace popnn::ctc
