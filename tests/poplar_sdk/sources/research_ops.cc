// Custom ops of the kinds that researchers write.
#include "op_functions.hpp"

#include <poplin/Convolution.hpp>
#include <poplin/MatMul.hpp>
#include <popnn/Loss.hpp>
#include <popnn/NonLinearity.hpp>
#include <popops/Cast.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Loop.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <popops/TopK.hpp>
#include <popops/Zero.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

using namespace poplar;
using namespace poplar::program;
namespace pe = popops::expr;

METADATA(Stencil) {
  is_stateless = true;
  is_hashable = true;
}
BUILD(Stencil) {
  const unsigned iterations = std::stoul(attributes), bands = 4;
  const auto height = inputs[0].dim(0), width = inputs[0].dim(1), rows = (height + bands - 1) / bands;
  const Type type = inputs[0].elementType();
  const Tensor a = graph.addVariable(type, {height, width}, {debugPrefix, "a"}), b = graph.clone(a, {debugPrefix, "b"});
  const Tensor zeros = graph.addConstant(type, {width}, 0.0f, {debugPrefix, "zeros"});
  graph.setTileMapping(zeros, 0);
  const auto step = [&](const Tensor& from, const Tensor& to, const std::string& name) {
    ComputeSet set = graph.addComputeSet({debugPrefix, name});
    for (unsigned band = 0; band * rows < height; ++band) {
      const auto first = band * rows, end = std::min(first + rows, height);
      graph.setTileMapping(from.slice(first, end), band);
      graph.setTileMapping(to.slice(first, end, 0), band);
      auto vertex = graph.addVertex(set, poputil::templateVertex("Jacobi", type),
                                    {{"in", from.slice(first, end)},
                                     {"out", to.slice(first, end)},
                                     {"above", first == 0 ? zeros : from[first - 1]},
                                     {"below", end == height ? zeros : from[end]}});
      graph.setInitialValue(vertex["width"], width);
      graph.setTileMapping(vertex, band);
    }
    return Execute(set, {debugPrefix, name});
  };
  Sequence program({Copy(inputs[0], a)}, {debugPrefix, "stencil"});
  program.add(Repeat(iterations / 2, Sequence(step(a, b, "even"), step(b, a, "odd"))));
  if (iterations % 2) program.add(Sequence(step(a, b, "last"), Copy(b, a)));
  outputs.push_back(a);
  return program;
}

BUILD(Scan) {
  const unsigned parts = 7;
  const std::size_t size = inputs[0].numElements();
  const Tensor totals = graph.addVariable(FLOAT, {parts}, VariableMappingMethod::LINEAR, {debugPrefix, "totals"});
  const Tensor y = graph.addVariable(FLOAT, {size}, {debugPrefix, "y"}), x = inputs[0].flatten();
  ComputeSet local = graph.addComputeSet({debugPrefix, "local"}), offsets = graph.addComputeSet({debugPrefix, "offsets"});
  for (unsigned part = 0; part < parts; ++part) {
    const Interval range(size * part / parts, size * (part + 1) / parts);
    graph.setTileMapping(y.slice(range), part);
    VertexRef scan = graph.addVertex(local, "LocalScan");
    graph.connect(scan["in"], x.slice(range));
    graph.connect(scan["out"], y.slice(range));
    graph.connect(scan["total"], totals[part]);
    graph.setTileMapping(scan, part);
    VertexRef add = graph.addVertex(offsets, "AddTotals", {{"data", y.slice(range)}, {"totals", totals}});
    graph.setInitialValue(add["index"], part);
    graph.setTileMapping(add, part);
  }
  outputs.push_back(y.reshape(inputs[0].shape()));
  return Sequence{Execute(local), Execute(offsets)};
}
GRADIENT(Scan) {  // the scan of the reversed gradient, reversed
  Sequence program;
  std::vector<Tensor> reversed;
  program.add(Scan(graph, {gradients[0].flatten().reverse(0)}, reversed, attributes, debugPrefix));
  outputs.push_back(reversed[0].reverse(0).reshape(inputs[0].shape()));
  return program;
}

BUILD(Histogram) {
  const unsigned bins = std::stoul(attributes), workers = graph.getTarget().getNumWorkerContexts();
  const auto mapping = graph.getTileMapping(inputs[0]);
  std::vector<Tensor> parts;
  ComputeSet set = graph.addComputeSet({debugPrefix, "count"});
  for (unsigned tile = 0; tile < mapping.size(); ++tile) {
    if (mapping[tile].empty()) continue;
    const Tensor mine = concat(inputs[0].flatten().slices(mapping[tile]));
    const Tensor counts = graph.addVariable(UNSIGNED_INT, {workers, bins}, {debugPrefix, "counts"});
    graph.setTileMapping(counts, tile);
    auto vertex = graph.addVertex(set, "Histogram", {{"data", mine}, {"counts", counts.flatten()}});
    graph.setInitialValue(vertex["size"], mine.numElements());
    graph.setInitialValue(vertex["bins"], bins);
    graph.setTileMapping(vertex, tile);
    parts.push_back(counts);
  }
  Sequence program{Execute(set)};
  const Tensor counts = popops::cast(graph, concat(parts), INT, program, {debugPrefix, "cast"});
  outputs = {popops::reduce(graph, counts, {0}, popops::Operation::ADD, program, {debugPrefix, "reduce"})};
  return program;
}

BUILD(Sort) {
  const Tensor x = graph.addVariable(inputs[0].elementType(), inputs[0].shape(), {debugPrefix, "sorted"});
  poputil::mapTensorLinearly(graph, x, 1, 2);
  Sequence phases;
  for (unsigned phase = 0; phase < 2; ++phase) {
    ComputeSet set = graph.addComputeSet(debugPrefix + "/phase" + std::to_string(phase));
    for (unsigned i = phase; i + 1 < x.numElements(); i += 2) {
      VertexRef vertex = graph.addVertex(set, poputil::templateVertex("CompareSwap", x.elementType()));
      graph.connect(vertex["low"], x[i]);
      graph.connect(vertex["high"], x[i + 1]);
      graph.setTileMapping(vertex, i % graph.getTarget().getNumTiles());
    }
    phases.add(Execute(set));
  }
  outputs.push_back(x);
  return Sequence(Copy(inputs[0], x), Repeat((x.numElements() + 1) / 2, phases));
}

BUILD(Gelu) {
  const Type type = inputs[0].elementType();
  std::vector<float> values(65);
  for (int i = 0; i < 65; ++i) {
    const float x = -4 + i / 8.0f;
    values[i] = 0.5f * x * (1 + std::erf(x / std::sqrt(2.0f)));
  }
  const Tensor table = graph.addConstant(type, {65}, ArrayRef<float>(values), {debugPrefix, "table"});
  graph.setTileMapping(table, 0);
  const Tensor y = graph.clone(inputs[0], {debugPrefix, "y"});
  ComputeSet set = graph.addComputeSet({debugPrefix, "look_up"});
  const auto mapping = graph.getTileMapping(inputs[0]);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const auto& regions : poputil::splitRegionsBetweenWorkers(graph.getTarget(), mapping[tile], 8))
      for (const auto& region : regions) {
        VertexRef vertex = graph.addVertex(
            set, poputil::templateVertex("LookUp", type, 65),
            {{"table", table}, {"x", inputs[0].flatten().slice(region)}, {"y", y.flatten().slice(region)}});
        graph.setInitialValue(vertex["low"], -4.0f);
        graph.setInitialValue(vertex["scale"], 8.0f);
        graph.setTileMapping(vertex, tile);
      }
  outputs.push_back(y);
  return Execute(set);
}

BUILD(Ragged) {
  std::vector<Interval> intervals;
  std::istringstream lengths(attributes);
  for (std::size_t at = 0, length; lengths >> length; at += length) intervals.emplace_back(at, at + length);
  const std::vector<Tensor> rows = inputs[0].slices(intervals);
  const Tensor sums = graph.addVariable(FLOAT, {rows.size()}, {debugPrefix, "sums"});
  graph.setTileMapping(sums, 1);
  ComputeSet set = graph.addComputeSet({debugPrefix, "ragged"});
  VertexRef vertex = graph.addVertex(set, "RaggedSum");
  graph.connect(vertex["rows"], rows);
  graph.connect(vertex["sums"], sums);
  graph.setTileMapping(vertex, 1);
  outputs.push_back(sums);
  return Execute(set);
}

BUILD(Polar) {
  Sequence program({}, {debugPrefix});
  const Tensor radius = popops::map(graph, pe::Sqrt(pe::Add(pe::Square(pe::_1), pe::Square(pe::_2))),
                                    {inputs[0], inputs[1]}, program, {debugPrefix, "radius"});
  const Tensor angle = popops::map(graph, pe::BinaryOpType::ATAN2, inputs[1], inputs[0], program, {debugPrefix, "angle"});
  outputs = {radius, angle};
  return program;
}
GRADIENT(Polar) {
  Sequence program;
  const std::vector<Tensor> operands{gradients[0], inputs[0], results[0], gradients[1], inputs[1]};
  outputs.push_back(popops::map(graph, pe::_1 * pe::_2 / pe::_3 - pe::_4 * pe::_5 / pe::Square(pe::_3), operands, program,
                                {debugPrefix, "dx"}));
  outputs.push_back(popops::map(graph, pe::_1 * pe::_5 / pe::_3 + pe::_4 * pe::_2 / (pe::_3 * pe::_3), operands, program,
                                {debugPrefix, "dy"}));
  return program;
}

METADATA(Update) { input_to_output_tensor_aliasing = {{0, 0}}; }
BUILD(Update) {
  Sequence program;
  popops::scaledAddTo(graph, inputs[0], inputs[1], 0.5f, program, {debugPrefix, "axpy"});
  popops::mapInPlace(graph, pe::_1 + pe::Const(1.0f), {inputs[0]}, program, debugPrefix);
  outputs.push_back(inputs[0]);
  return program;
}

BUILD(Fma) {
  const Tensor c = graph.clone(inputs[2], {debugPrefix, "c"});
  poputil::mapTensorLinearly(graph, c, 1, 4);
  const Tensor a = graph.clone(c), b = graph.clone(c);
  ComputeSet set = graph.addComputeSet({debugPrefix, "fma"});
  const auto mapping = graph.getTileMapping(c);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const auto& parts : graph.getSortedContiguousRegions(c.flatten(), mapping[tile])) {
      const auto part = [&](const Tensor& tensor) { return concat(tensor.flatten().slices(parts)); };
      graph.setTileMapping(graph.addVertex(set, "Fma4", {{"a", part(a)}, {"b", part(b)}, {"c", part(c)}}), tile);
    }
  outputs.push_back(c);
  const Tensor from = concat(inputs[0].flatten(), inputs[1].flatten());
  return Sequence{Copy(inputs[2], c), Copy(from, concat(a.flatten(), b.flatten())), Execute(set)};
}

BUILD(Newton) {
  const Tensor squares = inputs[0].flatten();
  const Tensor roots = graph.addVariable(FLOAT, squares.shape(), VariableMappingMethod::LINEAR, {debugPrefix, "roots"});
  const Tensor steps = graph.addVariable(INT, {}, {debugPrefix, "steps"}), one = graph.addConstant(INT, {}, 1);
  graph.setTileMapping(steps, 0);
  graph.setTileMapping(one, 0);
  ComputeSet set = graph.addComputeSet({debugPrefix, "newton"});
  std::vector<Tensor> flags;
  const auto mapping = graph.getTileMapping(roots);
  for (unsigned tile = 0; tile < mapping.size(); ++tile)
    for (const auto& part : mapping[tile]) {
      flags.push_back(graph.addVariable(BOOL, {1}, {debugPrefix, "moved"}));
      graph.setTileMapping(flags.back(), tile);
      VertexRef vertex = graph.addVertex(
          set, "NewtonStep",
          {{"squares", squares.slice(part)}, {"roots", roots.slice(part)}, {"moved", flags.back()[0]}});
      graph.setInitialValue(vertex["tolerance"], 1e-6f);
      graph.setTileMapping(vertex, tile);
    }
  Sequence program{Copy(squares, roots)}, step{Execute(set)};
  popops::zero(graph, steps, program, {debugPrefix, "zero"});
  popops::addInPlace(graph, steps, one, step, {debugPrefix, "count"});
  const Tensor moved =
      popops::reduce(graph, concat(flags), BOOL, {0}, {popops::Operation::LOGICAL_OR}, step, {debugPrefix, "any"});
  program.add(RepeatWhileTrue(step, moved, Sequence{}));
  outputs = {roots.reshape(inputs[0].shape()), steps};
  return program;
}

BUILD(Supervisor) {
  const Tensor sum = graph.addVariable(FLOAT, {}, {debugPrefix, "sum"});
  graph.setTileMapping(sum, 7);
  ComputeSet set = graph.addComputeSet({debugPrefix, "sum"});
  graph.setTileMapping(graph.addVertex(set, "SupervisorSum", {{"data", inputs[0].flatten()}, {"out", sum}}), 7);
  outputs.push_back(sum);
  return Execute(set);
}

BUILD(FromText) {
  std::stringstream source(R"(
    #include <poplar/Vertex.hpp>
    class FromText : public poplar::Vertex {
     public:
      poplar::Input<poplar::Vector<float>> x;
      poplar::Output<poplar::Vector<float>> y;
      void compute() { for (unsigned i = 0; i < x.size(); ++i) y[i] = x[i] * FACTOR; }
    };)");
  if (!graph.hasCodelet("FromText")) graph.addCodelets(source, "-DFACTOR=5.0f");
  const Tensor y = graph.clone(inputs[0]);
  ComputeSet set = graph.addComputeSet({debugPrefix, "scale"});
  graph.setTileMapping(graph.addVertex(set, "FromText", {{"x", inputs[0].flatten()}, {"y", y.flatten()}}), 0);
  outputs.push_back(y);
  return Execute(set);
}

BUILD(Choose) {  // doubles, adds, or both, by a number; then adds 0 to 4 in a loop
  const Tensor x = graph.addVariable(FLOAT, inputs[0].shape(), VariableMappingMethod::LINEAR, {debugPrefix, "x"});
  Sequence twice, plus, program{Copy(inputs[0], x)};
  popops::mapInPlace(graph, pe::_1 * pe::Const(2.0f), {x}, twice, {debugPrefix, "twice"});
  popops::mapInPlace(graph, pe::Add(pe::_1, pe::Const(1.0f)), {x}, plus, {debugPrefix, "plus"});
  const Function doubled = graph.addFunction(twice), added = graph.addFunction(plus);
  Switch choice(inputs[1].reshape({}), Call(added));
  choice.add(0, Call(doubled));
  choice.add(3, Sequence{Call(doubled), Call(added), Call(doubled)});
  program.add(choice);
  program.add(popops::countedLoop(graph, 0, 5, 1, [&](const Tensor& i) {
    Sequence body;
    const Tensor value = popops::cast(graph, i, FLOAT, body, {debugPrefix, "cast"});
    popops::addInPlace(graph, x, value.reshape({1}).broadcast(x.numElements(), 0), body, {debugPrefix, "add"});
    return body;
  }));
  outputs.push_back(x);
  return program;
}

BUILD(Rows) {  // reversed rows by dynamic slices, and the largest two of each
  const std::size_t rows = inputs[0].dim(0);
  const Tensor reversed = popops::createSliceableTensor(graph, FLOAT, inputs[0].shape(), {0}, {1}, 0, {debugPrefix, "rows"});
  const Tensor last = graph.addConstant(UNSIGNED_INT, {1}, unsigned(rows - 1));
  graph.setTileMapping(last, 0);
  Sequence program{WriteUndef(reversed)};
  program.add(popops::countedLoop(graph, rows, [&](const Tensor& i) {
    Sequence body;
    const Tensor row = popops::dynamicSlice(graph, inputs[0], i, {0}, {1}, body, {debugPrefix, "slice"});
    const Tensor place = popops::sub(graph, last, i, body, {debugPrefix, "place"});
    popops::dynamicUpdate(graph, reversed, row, place, {0}, {1}, body, {debugPrefix, "update"});
    return body;
  }));
  const auto largest = popops::topKWithPermutation(
      graph, program, inputs[0], popops::TopKParams(2, true, popops::SortOrder::DESCENDING), {debugPrefix, "largest"});
  outputs = {reversed, largest.first, largest.second};
  return program;
}

METADATA(Take) { allocating_indices = {0, 1}; }
extern "C" Tensor Take_allocator(Graph& graph, std::uint32_t operand, const std::vector<std::size_t>& shape, Type type,
                                 const std::string& attributes, const std::string& debugPrefix) {
  if (operand == 0)
    return popops::createGroupedSliceableTensor(graph, type, shape[0], {shape[1], shape[2]}, {0}, {1}, {}, {}, debugPrefix);
  return popops::createGroupedIndicesTensor(graph, shape[0], {0}, shape[1], {}, {}, debugPrefix).squeeze({2});
}
BUILD(Take) {  // rows of each group; its indices are unsigned, and TensorFlow's are not
  Sequence program;
  const Tensor indices = inputs[1].expand({2}).reinterpret(UNSIGNED_INT);
  const Tensor rows = popops::groupedMultiSlice(graph, inputs[0], indices, {0}, {1}, program, {}, {}, debugPrefix);
  outputs = {rows.squeeze({2})};
  return program;
}

METADATA(Dense) {
  allocating_indices = {0, 1};
  is_stateless = true;
}
extern "C" Tensor Dense_allocator(Graph& graph, std::uint32_t operand, const std::vector<std::size_t>& shape, Type type,
                                  const std::string& attributes, const std::string& debugPrefix) {
  std::vector<std::size_t> other(2);  // the shape of the other operand
  std::istringstream(attributes) >> other[operand];
  other[1 - operand] = shape[operand];
  return operand == 0 ? poplin::createMatMulInputLHS(graph, type, shape, {shape[1], other[0]}, debugPrefix + "/x")
                      : poplin::createMatMulInputRHS(graph, type, {other[1], shape[0]}, shape, debugPrefix + "/w");
}
BUILD(Dense) {
  Sequence program;
  outputs.resize(1);
  outputs[0] = poplin::matMul(graph, inputs[0], inputs[1], program, {debugPrefix, "matmul"});
  return program;
}
GRADIENT(Dense) {
  Sequence program;
  outputs = {poplin::matMul(graph, gradients[0], inputs[1].transpose(), program, debugPrefix + "/dx"),
             poplin::matMul(graph, inputs[0].transpose(), gradients[0], program, debugPrefix + "/dw")};
  return program;
}

BUILD(Swish) {
  Sequence program;
  const auto scale = pe::Const(std::stof(attributes));
  outputs = {popops::map(graph, pe::_1 * pe::Sigmoid(scale * pe::_1), {inputs[0]}, program, debugPrefix)};
  return program;
}
GRADIENT(Swish) {  // with s(x) = sigmoid(b x), the derivative is s + b x s (1 - s)
  Sequence program;
  const auto scale = pe::Const(std::stof(attributes)), one = pe::Const(1.0f);
  const auto sigmoid = pe::Sigmoid(scale * pe::_1);
  const auto derivative = pe::Add(sigmoid, pe::Mul(scale * pe::_1, sigmoid * (one - sigmoid)));
  outputs.push_back(popops::map(graph, derivative * pe::_2, {inputs[0], gradients[0]}, program, debugPrefix + "/grad"));
  return program;
}

BUILD(ConjugateGradients) {
  Sequence program, condition, step;
  const Tensor &matrix = inputs[0], &right = inputs[1];
  const auto dot = [&](const Tensor& a, const Tensor& b, Sequence& prog) {
    return popops::reduce(graph, popops::mul(graph, a, b, prog).flatten(), {0}, popops::Operation::ADD, prog);
  };
  const Tensor x = graph.clone(right), rest = poputil::duplicate(graph, right, program);
  const Tensor direction = poputil::duplicate(graph, right, program);
  popops::zero(graph, x, program);
  const Tensor error = dot(rest, rest, program), goal = graph.addConstant(FLOAT, {}, 1e-8f);
  graph.setTileMapping(goal, 0);
  const Tensor goes_on = popops::gt(graph, error, goal, condition);
  const Tensor image = poplin::matMul(graph, matrix, direction.expand({1}), step).flatten();
  const Tensor length = popops::div(graph, error, dot(direction, image, step), step);
  popops::addInPlace(graph, x, popops::mul(graph, length, direction, step), step);
  popops::subInPlace(graph, rest, popops::mul(graph, length, image, step), step);
  const Tensor next = dot(rest, rest, step), ratio = popops::div(graph, next, error, step);
  step.add(Copy(next, error));
  step.add(Copy(popops::map(graph, pe::_1 + pe::_2 * pe::_3, {rest, ratio, direction}, step), direction));
  program.add(RepeatWhileTrue(condition, goes_on, step));
  outputs.push_back(x);
  return program;
}

BUILD(Viterbi) {  // the best scores, and for each step the state before
  Sequence program;
  const Tensor &transitions = inputs[0], &emissions = inputs[1];
  const auto steps = emissions.dim(0), states = emissions.dim(1);
  const Tensor scores = graph.addVariable(FLOAT, {states}, "scores"), next = graph.addVariable(FLOAT, {states}, "next");
  const Tensor before = graph.addVariable(UNSIGNED_INT, {states}, "before");
  const Tensor path = graph.addVariable(UNSIGNED_INT, {steps, states}, "path");
  for (unsigned state = 0; state < states; ++state)
    for (const Tensor& tensor : {scores, next, before, path.transpose()}) graph.setTileMapping(tensor[state], state);
  program.add(Copy(emissions[0], scores));
  popops::zero(graph, path, program);
  program.add(popops::countedLoop(graph, 1, steps, 1, [&](const Tensor& i) {
    Sequence body;
    const Tensor index = i.reinterpret(UNSIGNED_INT).reshape({1});
    const Tensor emission = popops::dynamicSlice(graph, emissions, index, {0}, {1}, body).flatten();
    ComputeSet set = graph.addComputeSet("viterbi");
    for (unsigned state = 0; state < states; ++state) {
      const Tensor into = transitions.slice(state, state + 1, 1).flatten();
      graph.setTileMapping(graph.addVertex(set, "BestState", {{"scores", scores}, {"into", into}, {"emission", emission[state]},
                                                              {"score", next[state]}, {"before", before[state]}}), state);
    }
    body.add(Execute(set));
    body.add(Copy(next, scores));
    popops::dynamicUpdate(graph, path, before.expand({0}), index, {0}, {1}, body);
    return body;
  }));
  outputs = {scores, path};
  return program;
}

BUILD(Convolution) {  // NHWC and HWIO
  Sequence program;
  const Tensor &x = inputs[0], &w = inputs[1];
  const poplin::ConvParams params(x.elementType(), x.dim(0), {x.dim(1), x.dim(2)}, {w.dim(0), w.dim(1)}, w.dim(2), w.dim(3), 1);
  const Tensor in = poplin::createInput(graph, params, "in"), weights = poplin::createWeights(graph, params, "weights");
  program.add(Copy(x.dimShuffle({0, 3, 1, 2}), in));
  program.add(Copy(w.dimShuffle({3, 2, 0, 1}).expand({0}), weights));
  outputs.push_back(poplin::convolution(graph, in, weights, params, false, program, debugPrefix).dimShuffle({0, 2, 3, 1}));
  return program;
}

BUILD(CrossEntropy) {  // losses, and their derivatives for the gradient
  Sequence program;
  const Tensor losses = graph.addVariable(FLOAT, {inputs[0].dim(0)}, VariableMappingMethod::LINEAR);
  const Tensor derivatives = graph.clone(inputs[0]);
  const Tensor probabilities = popnn::nonLinearity(graph, popnn::NonLinearityType::SOFTMAX, inputs[0], program);
  program.add(popnn::calcLoss(graph, probabilities, inputs[1].reinterpret(UNSIGNED_INT), losses, derivatives,
                              popnn::CROSS_ENTROPY_LOSS, debugPrefix));
  outputs = {losses, derivatives};
  return program;
}
GRADIENT(CrossEntropy) {
  Sequence program;
  outputs = {popops::mul(graph, results[1], gradients[0].expand({1}), program), Tensor()};
  return program;
}

BUILD(Total) {  // of all calls
  Sequence program;
  const Tensor total = graph.addVariable(INT, {}, "total");
  graph.setTileMapping(total, 0);
  graph.setInitialValue(total, 40);
  popops::addInPlace(graph, total, popops::cast(graph, inputs[0], INT, program), program);
  outputs.push_back(poputil::duplicate(graph, total, program));
  return program;
}

BUILD(Signed) {  // twice the input if its sum is positive, else its negative
  Sequence positive, negative, program;
  const Tensor out = graph.clone(inputs[0]);
  for (Sequence* branch : {&positive, &negative}) branch->add(Copy(inputs[0], out));
  popops::mulInPlace(graph, out, 2.0f, positive);
  popops::negInPlace(graph, out, negative);
  const Tensor sum = popops::reduce(graph, inputs[0].flatten(), {0}, {popops::Operation::ADD}, program);
  const Tensor is_positive = popops::gt(graph, sum, 0.0f, program);
  program.add(If(is_positive, positive, negative));
  outputs = {out, is_positive};
  return program;
}

BUILD(PutOn) {  // a tile
  const Tensor out = graph.clone(inputs[0]);
  graph.setTileMapping(out, std::stoul(attributes));
  outputs = {out};
  return Copy(inputs[0], out);
}

METADATA(FirstTile) { allocating_indices = {0}; }
ALLOCATOR(FirstTile) {
  const Tensor input = graph.addVariable(type, shape);
  graph.setTileMapping(input, 7);
  return input;
}
BUILD(FirstTile) {  // of its input
  const auto mapping = graph.getTileMapping(inputs[0]);
  const auto used = std::find_if(mapping.begin(), mapping.end(), [](const auto& tile) { return !tile.empty(); });
  outputs = {graph.addConstant<int>(INT, {}, used - mapping.begin())};
  graph.setTileMapping(outputs[0], 0);
  return Sequence();
}
