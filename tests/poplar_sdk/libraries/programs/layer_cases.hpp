// Cases of recurrent layers, CTC losses, multi-convolutions and histograms.
#pragma once

#include <poplar/RandomSeed.hpp>
#include <poplin/MultiConvolution.hpp>
#include <popnn/CTCInference.hpp>
#include <popnn/CTCLoss.hpp>
#include <popnn/Gru.hpp>
#include <popnn/LogSoftmax.hpp>
#include <popnn/Lstm.hpp>
#include <popops/GatherStatistics.hpp>
#include <poprand/RandomGen.hpp>

#include "cases.hpp"

using popnn::NonLinearityType;

// A small layer: 5 steps of 3 sequences, 4 inputs, 2 outputs.
inline const Shape LAYER_INPUT{5, 3, 4}, LAYER_STATE{3, 2};

inline void lstmCase(Case &c, const std::function<void(popnn::lstm::LstmParams &)> &change, const Type &type = FLOAT,
                     bool lengths = false, bool alone = false) {
  popnn::lstm::LstmParams params(type, 3, 5, {4, 2});
  if (lengths) params.rnn.varTimeSteps = c.data("lengths", UNSIGNED_INT, {3}, {5, 2, 3});
  change(params);
  const auto x = c.input("x", type, LAYER_INPUT);
  const popnn::lstm::LstmState first{c.input("h", type, LAYER_STATE), c.input("c", type, LAYER_STATE)};
  const popnn::lstm::LstmWeights weights{c.input("wi", type, {4, 4, 2}, -1, 1), c.input("wo", type, {4, 2, 2}, -1, 1),
                                         c.input("b", type, {4, 2}, -1, 1)};
  Tensor kept, dx;
  const auto [out, cell] = popnn::lstm::lstmFwd(c.graph, params, first, x, weights, &kept, c.prog);
  c.output("out", out);
  c.output("cell", cell);
  const auto g = c.input("g", type, out.shape());
  const popnn::lstm::LstmState last{c.input("gh", type, LAYER_STATE), c.input("gc", type, LAYER_STATE)};
  popnn::lstm::LstmWeights gradients;
  popnn::lstm::LstmState start;
  if (alone) {
    start = popnn::lstm::lstmBwdWithWU(c.graph, params, c.prog, first, kept, weights, x, out, g, &last.cellState, &dx,
                                       gradients);
  } else {
    start = popnn::lstm::lstmBwdWithWU(c.graph, params, c.prog, first, kept, weights, x, out, g, &last, &dx, gradients);
  }
  c.output("dx", dx);
  c.output("dh", start.output);
  c.output("dc", start.cellState);
  c.output("dwi", gradients.inputWeights);
  c.output("dwo", gradients.outputWeights);
  c.output("db", gradients.biases);
}

inline void gruCase(Case &c, const std::function<void(popnn::gru::GruParams &)> &change, const Type &type = FLOAT,
                    bool lengths = false) {
  popnn::gru::GruParams params(type, 3, 5, {4, 2});
  change(params);
  const auto x = c.input("x", type, LAYER_INPUT), h = c.input("h", type, LAYER_STATE);
  const popnn::gru::GruWeights weights{c.input("wi", type, {3, 4, 2}, -1, 1), c.input("wo", type, {3, 2, 2}, -1, 1),
                                       c.input("b", type, params.resetAfter ? Shape{3, 2, 2} : Shape{3, 2}, -1, 1)};
  Tensor kept, dx, out, start;
  popnn::gru::GruWeights gradients;
  if (lengths) {
    const auto steps = c.data("lengths", UNSIGNED_INT, {3}, {5, 2, 3});
    out = popnn::gru::gruFwd(c.graph, params, h, x, steps, weights, &kept, c.prog);
    const auto g = c.input("g", type, out.shape());
    start = popnn::gru::gruBwdWithWU(c.graph, params, c.prog, h, kept, weights, x, steps, out, g, &dx, gradients, {}, {},
                                     nullptr);
  } else {
    out = popnn::gru::gruFwd(c.graph, params, h, x, weights, &kept, c.prog);
    const auto g = c.input("g", type, out.shape());
    start = popnn::gru::gruBwdWithWU(c.graph, params, c.prog, h, kept, weights, x, out, g, &dx, gradients, {}, {},
                                     nullptr);
  }
  c.output("out", out);
  c.output("dx", dx);
  c.output("dh", start);
  c.output("dwi", gradients.inputWeights);
  c.output("dwo", gradients.outputWeights);
  c.output("db", gradients.biases);
}

// Enough beams for every label, and one beam only.
inline void beamSearchCase(Case &c) {
  const auto logits = c.input("logits", FLOAT, {5, 3, 3});
  const auto steps = c.data("steps", UNSIGNED_INT, {3}, {5, 2, 0});
  const auto plan = popnn::ctc_infer::plan(c.graph, FLOAT, 3, 5, 3, 40);
  const auto search = [&](unsigned beams, unsigned paths, unsigned blank = 0) {
    return popnn::ctc_infer::beamSearchDecoderLogits(c.graph, logits, steps, c.prog, blank, beams, paths, plan);
  };
  const auto [costs, lengths, labels] = search(40, 4);
  c.output("costs", costs);
  c.output("lengths", lengths);
  c.output("labels", labels);
  const auto logs = popnn::logSoftmax(c.graph, logits, c.prog);
  c.output("alone", std::get<0>(popnn::ctc_infer::beamSearchDecoderLogProbabilities(c.graph, logs, steps, c.prog, 0, 40,
                                                                                     4, plan)));
  c.output("narrow", std::get<0>(search(1, 1)));
  c.error("paths", [&] { search(1, 2); });
  c.error("blank", [&] { search(1, 1, 3); });
}

inline std::vector<NamedCase> layerCases() {
  std::vector<NamedCase> cases;
  const auto nothing = [](auto &) {};
  cases.push_back({"lstm plain", [=](Case &c) {
                     lstmCase(c, nothing);
                     popnn::lstm::LstmParams wrong(FLOAT, 3, 5, {4, 2}, NonLinearityType::GELU);
                     c.error("activation", [&] { popnn::lstm::createInput(c.graph, wrong, {}); });
                     popnn::lstm::LstmParams right(FLOAT, 3, 5, {4, 2});
                     c.error("option", [&] { popnn::lstm::createWeights(c.graph, right, {}, {{"partialType", "half"}}); });
                     right.cellOrder.pop_back();
                     c.error("order", [&] { popnn::lstm::createInput(c.graph, right, {}); });
                   }});
  cases.push_back({"lstm cell", [=](Case &c) { lstmCase(c, nothing, FLOAT, false, true); }});
  cases.push_back({"lstm half", [=](Case &c) { lstmCase(c, nothing, HALF); }});
  cases.push_back({"lstm last", [=](Case &c) { lstmCase(c, [](auto &params) { params.outputFullSequence = false; }); }});
  cases.push_back({"lstm other", [=](Case &c) {
                     lstmCase(c, [](auto &params) {
                       params.cellOrder = {BASIC_LSTM_CELL_INPUT_GATE, BASIC_LSTM_CELL_OUTPUT_GATE,
                                           BASIC_LSTM_CELL_FORGET_GATE, BASIC_LSTM_CELL_CANDIDATE};
                       params.activation = NonLinearityType::SOFTMAX;
                       params.recurrentActivation = NonLinearityType::HARD_SIGMOID;
                     });
                   }});
  cases.push_back({"lstm lengths", [=](Case &c) { lstmCase(c, nothing, FLOAT, true); }});
  cases.push_back({"lstm kept", [=](Case &c) {
                     lstmCase(c, [](auto &params) { params.outputFullSequence = false, params.preserveFinalState = true; },
                              FLOAT, true);
                   }});
  cases.push_back({"gru plain", [=](Case &c) { gruCase(c, nothing); }});
  cases.push_back({"gru half", [=](Case &c) { gruCase(c, nothing, HALF); }});
  cases.push_back({"gru last", [=](Case &c) { gruCase(c, [](auto &params) { params.outputFullSequence = false; }); }});
  cases.push_back({"gru after", [=](Case &c) { gruCase(c, [](auto &params) { params.resetAfter = true; }); }});
  cases.push_back({"gru lengths", [=](Case &c) {
                     gruCase(c, [](auto &params) {
                       params.cellOrder = {BASIC_GRU_CELL_CANDIDATE, BASIC_GRU_CELL_RESET_GATE, BASIC_GRU_CELL_UPDATE_GATE};
                     }, FLOAT, true);
                   }});
  cases.push_back({"beam search", [](Case &c) { beamSearchCase(c); }});
  for (const auto &[name, options] : std::vector<std::pair<std::string, OptionFlags>>{
           {"plain", {}}, {"logs", {{"includeSoftmaxGradient", "false"}}}, {"zero", {{"zeroInfinity", "true"}}}})
    cases.push_back({"ctc " + name, [options = options](Case &c) {
                       const auto logits = c.input("logits", FLOAT, {6, 4, 4});
                       const auto labels = c.data("labels", UNSIGNED_INT, {4, 3}, {1, 2, 0, 2, 2, 0, 3, 0, 0, 1, 2, 3});
                       const auto steps = c.data("steps", UNSIGNED_INT, {4}, {6, 5, 4, 2});
                       const auto lengths = c.data("lengths", UNSIGNED_INT, {4}, {2, 2, 0, 3});
                       const auto plan = popnn::ctc::plan(c.graph, FLOAT, FLOAT, 4, 6, 3, 4);
                       const auto both = popnn::ctc::calcLossAndGradientLogits(c.graph, FLOAT, logits, labels, steps,
                                                                               lengths, c.prog, 0, plan, {}, options);
                       c.output("loss", both.first);
                       c.output("gradient", both.second);
                       const auto logs = popnn::logSoftmax(c.graph, logits, c.prog);
                       c.output("alone", popnn::ctc::calcCTCLossLogProbabilities(c.graph, FLOAT, logs, labels, steps,
                                                                                 lengths, c.prog, 0, plan, {}, options));
                       c.error("blank", [&] {
                         popnn::ctc::calcCTCLossLogits(c.graph, FLOAT, logits, labels, steps, lengths, c.prog, 4, plan);
                       });
                       // One sequence of 2 steps, 2 classes and a label of up to 2 elements.
                       const auto lose = [&](unsigned of_steps, unsigned length, unsigned last) {
                         const auto constant = [&](const Shape &shape, const std::vector<unsigned> &values) {
                           const auto tensor = c.graph.addConstant(UNSIGNED_INT, shape, ArrayRef<unsigned>(values));
                           c.graph.setTileMapping(tensor, 0);
                           return tensor;
                         };
                         Sequence prog;
                         popnn::ctc::calcCTCLossLogits(c.graph, FLOAT, logits.slice({0, 0, 0}, {2, 1, 2}),
                                                       constant({1, 2}, {1, last}), constant({1}, {of_steps}),
                                                       constant({1}, {length}), prog, 0, plan);
                         Engine engine(c.graph, prog);
                         engine.load(c.device);
                         engine.run(0);
                       };
                       c.error("fits", [&] { lose(2, 1, 2); });
                       c.error("steps", [&] { lose(3, 1, 1); });
                       c.error("length", [&] { lose(2, 3, 1); });
                       c.error("class", [&] { lose(2, 2, 2); });
                     }});
  cases.push_back({"multi convolution", [](Case &c) {
                     const poplin::ConvParams a(FLOAT, 1, {5, 5}, {3, 2}, 2, 3, 1), b(FLOAT, 2, {6}, {2}, 1, 2, 2);
                     const auto xa = c.input("xa", FLOAT, {1, 2, 5, 5}), wa = c.input("wa", FLOAT, {1, 3, 2, 3, 2});
                     const auto xb = c.input("xb", FLOAT, {2, 2, 6}), wb = c.input("wb", FLOAT, {2, 2, 1, 2});
                     const auto ys = poplin::multiconv::convolution(c.graph, {{xa, wa, a, {}}, {xb, wb, b, {}}}, false,
                                                                    c.prog, {}, {{"planType", "serial"}});
                     c.output("ya", ys[0]);
                     c.output("yb", ys[1]);
                     const auto g = c.input("g", FLOAT, ys[1].shape());
                     const auto deltas = poplin::multiconv::calculateWeightDeltas(c.graph, {{g, xb, b, {}}}, c.prog);
                     c.output("dw", deltas[0]);
                     const auto updated = c.graph.clone(wb);
                     c.prog.add(program::Copy(wb, updated));
                     poplin::multiconv::convolutionWeightUpdate(
                         c.graph, std::vector<poplin::multiconv::ConvWeightUpdateArgsScalar>{{g, updated, xb, -0.5f, b, {}}},
                         c.prog);
                     c.output("updated", updated);
                     c.error("plan", [&] {
                       poplin::multiconv::createWeights(c.graph, {{a, {}, "a"}}, 0, {{"planType", "cereal"}});
                     });
                     c.error("index", [&] { poplin::multiconv::createInput(c.graph, {{a, {}, "a"}}, 1); });
                   }});
  cases.push_back({"histogram", [](Case &c) {
                     const auto x = c.input("x", FLOAT, {40, 25}), h = c.input("h", HALF, {99});
                     const auto levels = c.data("levels", FLOAT, {4}, {-1, 0, 0.5, 1.5});
                     const auto few = c.data("few", HALF, {2}, {0.25, 1});
                     auto sum = c.data("sum", UNSIGNED_INT, {3}, {1, 2, 3});
                     c.output("counts", popops::histogram(c.graph, x, levels, false, c.prog));
                     c.output("floats", popops::histogram(c.graph, x, levels, true, c.prog, {}, {{"useFloatArithmetic", "true"}}));
                     const auto added = c.graph.clone(sum);
                     c.prog.add(program::Copy(sum, added));
                     auto target = added;
                     popops::histogram(c.graph, h, target, true, few, true, c.prog);
                     c.output("added", added);
                     c.error("both", [&] {
                       popops::histogram(c.graph, x, levels, false, c.prog, {},
                                         {{"useFloatArithmetic", "true"}, {"useFloatArithmeticWithUnsignedIntOutput", "true"}});
                     });
                   }});
  cases.push_back({"hardware seeds", [](Case &c) {
                     const auto like = c.input("like", FLOAT, {64});
                     const auto draw = [&](const std::string &name) {
                       c.output(name, poprand::uniform(c.graph, nullptr, 0, like, FLOAT, 0, 1, c.prog));
                     };
                     const auto before = poplar::getHwSeeds(c.graph, c.prog);
                     draw("first");
                     draw("second");
                     poplar::setHwSeeds(c.graph, before, c.prog);
                     draw("first again");
                     draw("second again");
                     std::vector<double> values(16 * 6 * 4);
                     for (std::size_t i = 0; i != values.size(); ++i) values[i] = 200.0 * i + 1000;
                     const auto given = c.data("given", UNSIGNED_INT, {16, 6, 4}, values);
                     poplar::setHwSeeds(c.graph, given, c.prog);
                     c.output("read", poplar::getHwSeeds(c.graph, c.prog));
                     draw("given");
                     poplar::setHwSeeds(c.graph, given, c.prog);
                     draw("given again");
                     c.error("shape", [&] { poplar::setHwSeeds(c.graph, like, c.prog); });
                   }});
  return cases;
}
