// Reductions over dimensions. Floating-point sums and products are accumulated in double, then rounded once.
#pragma GCC optimize("O3,no-trapping-math")  // the loops are vectorised
#include <memory>
#include <poplar/detail/compute_sets.hpp>
#include <popops/Reduce.hpp>
#include <sstream>

#include "poputil/library.hpp"

namespace popops {

using namespace poputil::library;

namespace {

using poputil::detail::Arithmetic;

// The input's shape as {outer, size, inner}; the dimension `size` is reduced.
struct Reduction {
  Operation op = Operation::ADD;
  bool update = false, scaled = false;
  std::size_t outer = 1, size = 1, inner = 1;
};

double logAdd(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

// A reduction of elements of type T: the accumulation type, and the function.
template <Operation OP, class T>
struct Accumulation {
  using Value = Arithmetic<T>;
  static constexpr bool KEEPS_TYPE = OP == Operation::MIN || OP == Operation::MAX || std::is_same_v<T, bool>;
  using Sum = std::conditional_t<KEEPS_TYPE, Value,
                                 std::conditional_t<std::is_floating_point_v<Value>, double, std::uint64_t>>;

  static Sum identity() {
    using Limits = std::numeric_limits<Value>;
    if constexpr (OP == Operation::MUL || OP == Operation::LOGICAL_AND) return Sum(1);
    if constexpr (OP == Operation::MIN) return Limits::has_infinity ? Limits::infinity() : Limits::max();
    if constexpr (OP == Operation::MAX) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    if constexpr (OP == Operation::LOG_ADD) return static_cast<Sum>(-Limits::infinity());
    return Sum(0);
  }

  static Sum merge(Sum a, Sum b) {
    if constexpr (OP == Operation::MUL) return a * b;
    else if constexpr (OP == Operation::MIN) return b < a ? b : a;
    else if constexpr (OP == Operation::MAX) return b > a ? b : a;
    else if constexpr (OP == Operation::LOGICAL_AND) return a && b;
    else if constexpr (OP == Operation::LOGICAL_OR) return a || b;
    else if constexpr (OP == Operation::LOG_ADD) return static_cast<Sum>(logAdd(a, b));
    else return a + b;
  }

  static Sum add(Sum sum, Value value) {
    const auto wide = static_cast<Sum>(value);
    if constexpr (OP == Operation::SQUARE_ADD) return sum + wide * wide;
    else return merge(sum, wide);
  }
};

// The reduced values, scaled, added to what the output holds, in the output's type.
template <class In, class Out, class Sum>
void finish(const Reduction &reduction, Sum sum, double scale, Out &out) {
  if constexpr (std::is_same_v<In, bool>) {
    poputil::detail::store(out, static_cast<bool>(sum));
  } else if constexpr (std::is_floating_point_v<Sum>) {
    double value = sum;
    const bool logarithms = reduction.op == Operation::LOG_ADD;
    if (reduction.scaled) value = logarithms ? value + scale : value * scale;
    if (reduction.update) {
      const auto before = static_cast<double>(poputil::detail::load(out));
      value = logarithms ? logAdd(value, before) : value + before;
    }
    poputil::detail::store(out, static_cast<float>(value));
  } else {
    auto value = static_cast<In>(sum);
    if (reduction.scaled) value = static_cast<In>(value * scale);
    if (reduction.update) value = static_cast<In>(value + static_cast<std::uint64_t>(poputil::detail::load(out)));
    poputil::detail::store(out, value);
  }
}

// Reduces the elements of the result that lie in [begin, end): of lines that lie side by side, some at a time.
template <Operation OP, class In, class Out>
void reduceColumns(const Reduction &reduction, const In *in, Out *out, double scale, std::size_t begin,
                   std::size_t end) {
  using A = Accumulation<OP, In>;
  constexpr std::size_t LANES = 64;
  typename A::Sum sums[LANES];
  while (begin != end) {
    const auto outer = begin / reduction.inner, first = begin % reduction.inner;
    const auto lanes = std::min({LANES, reduction.inner - first, end - begin});
    std::fill_n(sums, LANES, A::identity());
    const In *row = in + outer * reduction.size * reduction.inner + first;
    for (std::size_t i = 0; i != reduction.size; ++i, row += reduction.inner)
      for (std::size_t lane = 0; lane != lanes; ++lane)
        sums[lane] = A::add(sums[lane], poputil::detail::load(row[lane]));
    for (std::size_t lane = 0; lane != lanes; ++lane) finish<In>(reduction, sums[lane], scale, out[begin + lane]);
    begin += lanes;
  }
}

// The same for lines whose elements lie after each other, each with several sums that fit vector registers.
template <Operation OP, class In, class Out>
void reduceRows(const Reduction &reduction, const In *in, Out *out, double scale, std::size_t begin, std::size_t end) {
  using A = Accumulation<OP, In>;
  constexpr std::size_t LANES = 16;
  for (; begin != end; ++begin) {
    const In *row = in + begin * reduction.size;
    typename A::Sum sums[LANES];
    std::fill_n(sums, LANES, A::identity());
    std::size_t i = 0;
    for (; i + LANES <= reduction.size; i += LANES)
      for (std::size_t lane = 0; lane != LANES; ++lane)
        sums[lane] = A::add(sums[lane], poputil::detail::load(row[i + lane]));
    for (; i != reduction.size; ++i) sums[0] = A::add(sums[0], poputil::detail::load(row[i]));
    auto sum = sums[0];
    for (std::size_t lane = 1; lane != LANES; ++lane) sum = A::merge(sum, sums[lane]);
    finish<In>(reduction, sum, scale, out[begin]);
  }
}

template <Operation OP, class In, class Out>
void runOperation(const Reduction &reduction, const poputil::detail::KernelArguments &arguments, double scale) {
  const auto *in = static_cast<const In *>(arguments.inputs[0]);
  auto *out = static_cast<Out *>(arguments.outputs[0]);
  const auto grain = std::max<std::size_t>(65536 / std::max<std::size_t>(reduction.size, 1), 1);
  const auto part = reduction.inner == 1 ? &reduceRows<OP, In, Out> : &reduceColumns<OP, In, Out>;
  poplar::detail::parallelFor(reduction.outer * reduction.inner, grain, [&](std::size_t begin, std::size_t end) {
    part(reduction, in, out, scale, begin, end);
  });
}

template <class In, class Out>
void runReduction(const Reduction &reduction, const poputil::detail::KernelArguments &arguments, double scale) {
  if constexpr (std::is_same_v<In, bool>) {
    if (reduction.op == Operation::LOGICAL_AND)
      return runOperation<Operation::LOGICAL_AND, In, Out>(reduction, arguments, scale);
    return runOperation<Operation::LOGICAL_OR, In, Out>(reduction, arguments, scale);
  } else {
    switch (reduction.op) {
      case Operation::MUL: return runOperation<Operation::MUL, In, Out>(reduction, arguments, scale);
      case Operation::MIN: return runOperation<Operation::MIN, In, Out>(reduction, arguments, scale);
      case Operation::MAX: return runOperation<Operation::MAX, In, Out>(reduction, arguments, scale);
      case Operation::SQUARE_ADD: return runOperation<Operation::SQUARE_ADD, In, Out>(reduction, arguments, scale);
      case Operation::LOG_ADD:
        if constexpr (std::is_floating_point_v<Arithmetic<In>>)
          return runOperation<Operation::LOG_ADD, In, Out>(reduction, arguments, scale);
        return;
      default: return runOperation<Operation::ADD, In, Out>(reduction, arguments, scale);
    }
  }
}

std::string nameOf(Operation op) {
  std::ostringstream text;
  text << op;
  return text.str();
}

// Whether the operation exists for these types: between floating-point types, else of a type to itself.
void checkTypes(const Tensor &in, const poplar::Type &out, const ReduceParams &params) {
  const auto type = in.elementType();
  const bool floating = poputil::detail::isFloating(type) && poputil::detail::isFloating(out);
  const bool logical = params.op == Operation::LOGICAL_AND || params.op == Operation::LOGICAL_OR;
  const bool wrong = type == poplar::BOOL || logical || params.op == Operation::LOG_ADD
                         ? (params.op == Operation::LOG_ADD ? !floating : type != poplar::BOOL || !logical || out != type)
                         : !floating && type != out;
  if (wrong)
    fail("popops::reduce", "there is no reduction " + nameOf(params.op) + " from " + poputil::detail::typeName(type) +
         " to " + poputil::detail::typeName(out), "Cast the tensor");
  const bool sums = params.op == Operation::ADD || params.op == Operation::SQUARE_ADD || params.op == Operation::LOG_ADD;
  if ((params.update || params.useScale) && !sums)
    fail("popops::reduce", "the reduction " + nameOf(params.op) + " has a scale or updates its output",
         "Use ADD, SQUARE_ADD or LOG_ADD, or scale the result");
  if (params.useScale && (params.scale.numElements() != 1 || params.scale.elementType() != poplar::FLOAT))
    fail("popops::reduce", "the scale is not one float", "Pass a scalar tensor of type float");
}

Shape keptShape(const Shape &shape, const std::vector<bool> &reduced) {
  Shape kept;
  for (std::size_t dim = 0; dim != shape.size(); ++dim)
    if (!reduced[dim]) kept.push_back(shape[dim]);
  return kept;
}

std::vector<bool> markDims(const Shape &shape, const std::vector<std::size_t> &dims) {
  std::vector<bool> reduced(shape.size());
  for (const auto dim : dims) {
    if (dim >= shape.size())
      fail("popops::reduce", "dimension " + std::to_string(dim) + " is reduced of the shape " +
           poputil::detail::describeShape(shape), "Pass dimensions of the tensor");
    reduced[dim] = true;
  }
  return reduced;
}

// Views the tensor so that the reduced dimensions follow each other, and measures it.
Tensor arrange(const Tensor &in, const std::vector<bool> &reduced, Reduction &reduction) {
  const auto shape = in.shape();
  const auto first = std::find(reduced.begin(), reduced.end(), true);
  const auto after = std::find(first, reduced.end(), false);
  if (std::find(after, reduced.end(), true) == reduced.end()) {
    for (auto dim = reduced.begin(); dim != reduced.end(); ++dim)
      (dim < first ? reduction.outer : dim < after ? reduction.size : reduction.inner) *= shape[dim - reduced.begin()];
    return in;
  }
  std::vector<unsigned> order;
  for (const bool wanted : {false, true})
    for (unsigned dim = 0; dim != shape.size(); ++dim)
      if (reduced[dim] == wanted) order.push_back(dim);
  for (std::size_t dim = 0; dim != shape.size(); ++dim) (reduced[dim] ? reduction.size : reduction.outer) *= shape[dim];
  return in.dimShuffle(order);
}

// Outputs may have further axes of one element, as scripts give them to reduceMany.
std::vector<std::size_t> withoutOnes(std::vector<std::size_t> shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

template <class Add>
void addReduction(const Tensor &in, const Tensor &out, const std::vector<std::size_t> &dims,
                  const ReduceParams &params, Add addKernel) {
  checkTypes(in, out.elementType(), params);
  const auto reduced = markDims(in.shape(), dims);
  const auto kept = keptShape(in.shape(), reduced);
  if (withoutOnes(out.shape()) != withoutOnes(kept))
    fail("popops::reduce", "the output has the shape " + poputil::detail::describeShape(out.shape()) + "; expected " +
         poputil::detail::describeShape(kept), "Pass an output of that shape");
  Reduction reduction{params.op, params.update, params.useScale};
  std::vector<Tensor> inputs{arrange(in, reduced, reduction)};
  if (params.useScale) inputs.push_back(params.scale);
  const auto in_type = in.elementType(), out_type = out.elementType();
  addKernel(inputs,
  Kernel::of([](const poputil::detail::KernelArguments &arguments, const auto &reduction, const auto &in_type,
                const auto &out_type) {
    const double scale = reduction.scaled ? *static_cast<const float *>(arguments.inputs[1]) : 1;
    poputil::detail::visitType(in_type, [&](auto tag) {
      using In = typename decltype(tag)::type;
      if constexpr (std::is_floating_point_v<Arithmetic<In>>) {
        if (out_type == poplar::FLOAT) return runReduction<In, float>(reduction, arguments, scale);
        return runReduction<In, poputil::detail::Half>(reduction, arguments, scale);
      } else {
        return runReduction<In, In>(reduction, arguments, scale);
      }
    });
  }, reduction, in_type, out_type));
}

bool isMapped(const poplar::Graph &graph, const Tensor &tensor) {
  bool complete = false;
  graph.getTileMapping(tensor, &complete);
  return complete;
}

}  // namespace

Tensor reduce(poplar::Graph &graph, const Tensor &in, const poplar::Type &outType, const std::vector<std::size_t> &dims,
              ReduceParams params, Sequence &prog, const poplar::DebugContext &debugContext,
              const OptionFlags &options) {
  if (params.update)
    fail("popops::reduce", "it updates an output that it creates", "Call reduceWithOutput");
  const auto shape = keptShape(in.shape(), markDims(in.shape(), dims));
  const auto out = poputil::detail::createLinear(graph, outType, shape, {debugContext, "Reduce/Out"});
  reduceWithOutput(graph, in, out, dims, params, prog, debugContext, options);
  return out;
}

Tensor reduce(poplar::Graph &graph, const Tensor &in, const std::vector<std::size_t> &dims, ReduceParams params,
              Sequence &prog, const poplar::DebugContext &debugContext,
              const OptionFlags &options) {
  return reduce(graph, in, in.elementType(), dims, params, prog, debugContext, options);
}

void reduceWithOutput(poplar::Graph &graph, const Tensor &in, const Tensor &out, const std::vector<std::size_t> &dims,
                      ReduceParams params, Sequence &prog, const poplar::DebugContext &debugContext,
                      const OptionFlags &options) {
  checkOptions("popops::reduce", options, reduce_options);
  if (!isMapped(graph, out)) poputil::mapTensorLinearly(graph, out);
  addReduction(in, out, dims, params, [&](const std::vector<Tensor> &inputs, poplar::detail::Kernel kernel) {
    poputil::detail::addKernelIfAny(graph, prog, {debugContext, "Reduce"}, inputs, {out}, std::move(kernel));
  });
}

namespace {

void addToFirst(poplar::Graph &graph, std::vector<poplar::ComputeSet> &css, const Sequence &steps,
                const poplar::DebugContext &debugContext) {
  if (css.empty()) css.push_back(graph.addComputeSet({debugContext, "Reduce"}));
  poplar::detail::addToComputeSet(graph, css.front(), steps);
}

}  // namespace

Tensor reduce(poplar::Graph &graph, const Tensor &in, const poplar::Type &outType, const std::vector<std::size_t> &dims,
              ReduceParams params, std::vector<poplar::ComputeSet> &css, const poplar::DebugContext &debugContext,
              const OptionFlags &options) {
  Sequence steps;
  const auto out = reduce(graph, in, outType, dims, std::move(params), steps, debugContext, options);
  addToFirst(graph, css, steps, debugContext);
  return out;
}

Tensor reduce(poplar::Graph &graph, const Tensor &in, const std::vector<std::size_t> &dims, ReduceParams params,
              std::vector<poplar::ComputeSet> &css, const poplar::DebugContext &debugContext,
              const OptionFlags &options) {
  return reduce(graph, in, in.elementType(), dims, std::move(params), css, debugContext, options);
}

void reduceWithOutput(poplar::Graph &graph, const Tensor &in, const Tensor &out, const std::vector<std::size_t> &dims,
                      ReduceParams params, std::vector<poplar::ComputeSet> &css,
                      const poplar::DebugContext &debugContext, const OptionFlags &options) {
  Sequence steps;
  reduceWithOutput(graph, in, out, dims, std::move(params), steps, debugContext, options);
  addToFirst(graph, css, steps, debugContext);
}

void reduceMany(poplar::Graph &graph, const std::vector<SingleReduceOp> &reductions, std::vector<Tensor> &outputs,
                Sequence &prog, const poplar::DebugContext &debugContext,
                const OptionFlags &options) {
  const bool creates = outputs.empty();
  if (!creates && outputs.size() != reductions.size())
    fail("popops::reduceMany", "there are " + std::to_string(reductions.size()) + " reductions and " +
         std::to_string(outputs.size()) + " outputs", "Pass an output for each reduction, or none");
  for (std::size_t i = 0; i != reductions.size(); ++i) {
    const auto &single = reductions[i];
    const poplar::DebugContext name{debugContext, single.debugName};
    const auto type = single.useOutType ? single.outType : single.in.elementType();
    if (creates)
      outputs.push_back(reduce(graph, single.in, type, single.dims, single.params, prog, name, options));
    else
      reduceWithOutput(graph, single.in, outputs[i], single.dims, single.params, prog, name, options);
  }
}

}  // namespace popops
