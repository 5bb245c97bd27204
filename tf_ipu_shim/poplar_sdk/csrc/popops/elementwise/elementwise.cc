// Implements popops::map() and the functions that call it.
#include <functional>
#include <memory>
#include <popops/ElementWiseUtil.hpp>
#include <popops/Zero.hpp>
#include <popops/detail/names.hpp>
#include <poputil/Broadcast.hpp>

#include "expression_program.hpp"
#include "popops/float_expressions.hpp"
#include "poputil/library.hpp"

namespace popops {

using namespace poputil::library;

namespace {

// The blocks that one call of a thread computes at least.
constexpr std::size_t BLOCKS_PER_PART = 32;

// The common broadcast of the shapes.
Shape commonShape(const std::vector<Tensor> &tensors) {
  if (tensors.empty()) fail("popops::map", "there are no tensors", "Pass at least one");
  Shape shape;
  for (const auto &tensor : tensors) {
    auto other = tensor.shape();
    const auto rank = std::max(shape.size(), other.size());
    shape.insert(shape.begin(), rank - shape.size(), 1);
    other.insert(other.begin(), rank - other.size(), 1);
    for (std::size_t dim = 0; dim != rank; ++dim) {
      if (shape[dim] == 1) shape[dim] = other[dim];
      if (other[dim] != 1 && other[dim] != shape[dim])
        fail("popops::map", "the shape " + poputil::detail::describeShape(tensor.shape()) +
                              " does not broadcast to " + poputil::detail::describeShape(shape),
                              "Make each dimension equal to the other's, or 1");
    }
  }
  return shape;
}

// How elements of a tensor of shape `own`, row-major, repeat in `shape`.
detail::InputLayout layoutIn(const Shape &shape, Shape own) {
  detail::InputLayout layout;
  layout.contiguous = poputil::detail::product(own) == poputil::detail::product(shape);
  own.insert(own.begin(), shape.size() - own.size(), 1);
  layout.strides.resize(shape.size());
  std::size_t stride = 1;
  for (std::size_t dim = shape.size(); dim-- > 0; stride *= own[dim])
    layout.strides[dim] = own[dim] == 1 ? 0 : stride;
  return layout;
}

// Joins dimensions that lie after each other in all inputs, so that a scalar's rows are as long as the result.
void joinDimensions(Shape &shape, std::vector<detail::InputLayout> &layouts) {
  for (std::size_t dim = shape.size(); dim-- > 1;) {
    const bool joins = std::all_of(layouts.begin(), layouts.end(), [&](const auto &layout) {
      return shape[dim - 1] == 1 || layout.strides[dim - 1] == layout.strides[dim] * shape[dim];
    });
    if (!joins) continue;
    shape[dim - 1] *= shape[dim];
    shape.erase(shape.begin() + dim);
    for (auto &layout : layouts) layout.strides.erase(layout.strides.begin() + (dim - 1));
  }
}

// The part of an element-wise kernel that all threads share.
struct ElementWiseKernel {
  std::vector<detail::ExpressionProgram> programs;
  std::vector<detail::InputLayout> layouts;
  Shape shape;

  void compute(const poplar::detail::KernelArguments &arguments, std::size_t begin, std::size_t end) const {
    std::vector<detail::ExpressionProgram::Workspace> workspaces(programs.begin(), programs.end());
    constexpr auto BLOCK = detail::ExpressionProgram::BLOCK;
    std::vector<std::vector<std::uint64_t>> results(programs.size(), std::vector<std::uint64_t>(BLOCK));
    for (; begin < end; begin += BLOCK) {
      const auto count = std::min(BLOCK, end - begin);
      if (programs.size() == 1) {
        programs[0].run(workspaces[0], arguments.inputs, layouts, shape, begin, count, outputAt(arguments, 0, begin));
        continue;
      }
      // All expressions read before one of them writes.
      for (std::size_t i = 0; i != programs.size(); ++i)
        programs[i].run(workspaces[i], arguments.inputs, layouts, shape, begin, count, results[i].data());
      for (std::size_t i = 0; i != programs.size(); ++i)
        std::memcpy(outputAt(arguments, i, begin), results[i].data(), count * sizeOf(i));
    }
  }

  std::size_t sizeOf(std::size_t program) const {
    return poplar::detail::typeSize(programs[program].resultType());
  }

  void *outputAt(const poplar::detail::KernelArguments &arguments, std::size_t program, std::size_t begin) const {
    return static_cast<char *>(arguments.outputs[program]) + begin * sizeOf(program);
  }
};

POPLAR_FIELDS(ElementWiseKernel, part.programs, part.layouts, part.shape)

std::vector<detail::ExpressionProgram> compileAll(const std::vector<std::reference_wrapper<const expr::Expr>> &exprs,
                                                  const std::vector<Tensor> &ts) {
  std::vector<poplar::Type> types;
  for (const auto &tensor : ts) types.push_back(tensor.elementType());
  std::vector<detail::ExpressionProgram> programs;
  for (const expr::Expr &expression : exprs) programs.emplace_back(expression, types);
  return programs;
}

void checkOutput(const Tensor &out, const poplar::Type &type, const Shape &shape) {
  if (out.elementType() != type)
    fail("popops::map", "the output has the type " + poputil::detail::typeName(out.elementType()) +
                          "; expected " + poputil::detail::typeName(type), "Pass an output of the expression's type");
  if (out.shape() != shape)
    fail("popops::map", "the output has the shape " + poputil::detail::describeShape(out.shape()) +
                          "; expected " + poputil::detail::describeShape(shape), "Pass an output of that shape");
}

std::vector<std::reference_wrapper<const expr::Expr>> references(const std::vector<expr::Any> &exprs) {
  std::vector<std::reference_wrapper<const expr::Expr>> result;
  for (const auto &expression : exprs) result.emplace_back(static_cast<const expr::Expr &>(expression));
  return result;
}

bool isOperand(const expr::Expr &expression) {
  return expression.isA<expr::PlaceHolder>() || expression.isA<expr::Const>();
}

// The name of the compute set: that of one operation has the operation's, as in PopLibs' profiles.
std::string computeSetOf(const expr::Expr &expression) {
  const auto named = [](const char *name) { return "Op/" + detail::camelCase(name); };
  if (const auto *unary = expression.getAs<expr::UnaryOp>())
    if (isOperand(unary->getArg())) return named(detail::nameOf(unary->getOpType()));
  if (const auto *binary = expression.getAs<expr::BinaryOp>())
    if (isOperand(binary->getLHS()) && isOperand(binary->getRHS())) return named(detail::nameOf(binary->getOpType()));
  return "Op";
}

void addMap(poplar::Graph &graph, std::vector<detail::ExpressionProgram> programs, const std::vector<Tensor> &ts,
            const std::vector<Tensor> &outs, Sequence &prog, const std::string &name,
            const poplar::DebugContext &debugContext) {
  const auto shape = commonShape(ts);
  if (outs.size() != programs.size())
    fail("popops::map", "there are " + std::to_string(programs.size()) + " expressions and " +
                          std::to_string(outs.size()) + " outputs", "Pass one output for each expression");
  for (std::size_t i = 0; i != outs.size(); ++i) checkOutput(outs[i], programs[i].resultType(), shape);
  ElementWiseKernel kernel;
  kernel.programs = std::move(programs);
  kernel.shape = shape;
  for (const auto &tensor : ts) kernel.layouts.push_back(layoutIn(shape, tensor.shape()));
  joinDimensions(kernel.shape, kernel.layouts);
  const auto elements = poputil::detail::product(shape);
  if (elements == 0) return;
  const auto grain = BLOCKS_PER_PART * detail::ExpressionProgram::BLOCK;
  poplar::detail::KernelCost cost;
  cost.elementwise = true;
  poplar::detail::addKernel(graph, prog, {debugContext, name}, ts, outs,
                            Kernel::of([](const poplar::detail::KernelArguments &arguments, const auto &kernel,
                                          const auto &elements, const auto &grain) {
                              poplar::detail::parallelFor(elements, grain, [&](std::size_t begin, std::size_t end) {
                                kernel.compute(arguments, begin, end);
                              });
                            }, std::move(kernel), elements, grain),
                            cost);
}

std::vector<Tensor> mapToNew(poplar::Graph &graph, const std::vector<std::reference_wrapper<const expr::Expr>> &exprs,
                             const std::vector<Tensor> &ts, Sequence &prog, const std::string &name,
                             const poplar::DebugContext &debugContext) {
  auto programs = compileAll(exprs, ts);
  std::vector<Tensor> outs;
  for (const auto &program : programs)
    outs.push_back(createOutputForElementWiseOp(graph, ts, program.resultType(), {debugContext, name + "/Out"}));
  addMap(graph, std::move(programs), ts, outs, prog, name, debugContext);
  return outs;
}

}  // namespace

Tensor createOutputForElementWiseOp(poplar::Graph &graph, const std::vector<Tensor> &inputs,
                                    const poplar::Type &outputType, const poplar::DebugContext &debugContext) {
  const auto shape = commonShape(inputs);
  for (const auto &input : inputs)
    if (input.shape() == shape && !input.containsAliases() && !input.containsConstant() && input.numElements() != 0)
      return graph.clone(outputType, input, debugContext);
  const auto out = graph.addVariable(outputType, shape, debugContext);
  poputil::mapTensorLinearly(graph, out);
  return out;
}

Tensor map(poplar::Graph &graph, const expr::Expr &expr, const std::vector<Tensor> &ts, Sequence &prog,
           const poplar::DebugContext &debugContext, const OptionFlags &options) {
  checkOptions("popops::map", options, element_wise_options);
  return mapToNew(graph, {expr}, ts, prog, computeSetOf(expr), debugContext).front();
}

void mapInPlace(poplar::Graph &graph, const expr::Expr &expr, const std::vector<Tensor> &ts,
                Sequence &prog, const poplar::DebugContext &debugContext,
                const OptionFlags &options) {
  if (ts.empty()) fail("popops::mapInPlace", "there are no tensors", "Pass at least one");
  mapWithOutput(graph, expr, ts, ts.front(), prog, debugContext, options);
}

void mapWithOutput(poplar::Graph &graph, const expr::Expr &expr, const std::vector<Tensor> &ts, const Tensor &out,
                   Sequence &prog, const poplar::DebugContext &debugContext,
                   const OptionFlags &options) {
  checkOptions("popops::map", options, element_wise_options);
  addMap(graph, compileAll({expr}, ts), ts, {out}, prog, computeSetOf(expr), debugContext);
}

std::vector<Tensor> map(poplar::Graph &graph, const std::vector<expr::Any> &exprs, const std::vector<Tensor> &ts,
                        Sequence &prog, const poplar::DebugContext &debugContext,
                        const OptionFlags &options) {
  checkOptions("popops::map", options, element_wise_options);
  return mapToNew(graph, references(exprs), ts, prog, "Op", debugContext);
}

void mapInPlace(poplar::Graph &graph, const std::vector<expr::Any> &exprs, const std::vector<Tensor> &ts,
                Sequence &prog, const poplar::DebugContext &debugContext,
                const OptionFlags &options) {
  if (ts.size() < exprs.size())
    fail("popops::mapInPlace", "there are more expressions than tensors",
                          "Pass a tensor for each expression");
  mapWithOutput(graph, exprs, ts, std::vector<Tensor>(ts.begin(), ts.begin() + exprs.size()), prog, debugContext,
                options);
}

void mapWithOutput(poplar::Graph &graph, const std::vector<expr::Any> &exprs, const std::vector<Tensor> &ts,
                   const std::vector<Tensor> &outs, Sequence &prog,
                   const poplar::DebugContext &debugContext, const OptionFlags &options) {
  checkOptions("popops::map", options, element_wise_options);
  addMap(graph, compileAll(references(exprs), ts), ts, outs, prog, "Op", debugContext);
}

// Conversions of variances in float, with epsilon as a tensor and as a number.
#define VARIANCE_CONVERSION(function, OPERATION)                                                                     \
  Tensor function(poplar::Graph &graph, const Tensor &src, const Tensor &epsilon, Sequence &prog,   \
                  const poplar::Type dstType, const poplar::DebugContext &debugContext) {                            \
    using namespace expr;                                                                                            \
    const BinaryOp result(BinaryOpType::OPERATION, detail::inFloat(_1), detail::inFloat(_2));                        \
    return map(graph, expr::Cast(result, dstType), {src, epsilon}, prog, debugContext);                              \
  }                                                                                                                  \
  Tensor function(poplar::Graph &graph, const Tensor &src, const float epsilon, Sequence &prog,     \
                  const poplar::Type dstType, const poplar::DebugContext &debugContext) {                            \
    const auto constant = poputil::detail::constantScalar(graph, poplar::FLOAT, epsilon, debugContext);              \
    return function(graph, src, constant, prog, dstType, debugContext);                                              \
  }

VARIANCE_CONVERSION(varianceToInvStdDev, VARIANCE_TO_INV_STD_DEV)
VARIANCE_CONVERSION(invStdDevToVariance, INV_STD_DEV_TO_VARIANCE)
#undef VARIANCE_CONVERSION

}  // namespace popops
