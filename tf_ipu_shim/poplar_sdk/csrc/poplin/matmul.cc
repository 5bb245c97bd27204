// Multiplies matrices and groups of matrices, and creates their operands and results.
#include <poplin/MatMul.hpp>
#include <popops/ScaledAdd.hpp>
#include <poputil/detail/matrices.hpp>

#include "poputil/library.hpp"

namespace poplin {

using namespace poputil::library;

namespace {

// The sizes of a grouped product.
struct ProductSizes {
  std::size_t groups, rows, depth, columns;
};

ProductSizes sizesOf(const Shape &a, const Shape &b, std::size_t rank) {
  const auto describe = [&] { return poputil::detail::describeShape(a) + " times " + poputil::detail::describeShape(b); };
  if (a.size() != rank || b.size() != rank)
    fail("poplin::matMul", "the product is " + describe() + "; expected tensors of rank " + std::to_string(rank),
         "Reshape them");
  const Shape left(a.end() - 2, a.end()), right(b.end() - 2, b.end());
  if (left[1] != right[0] || (rank == 3 && a[0] != b[0]))
    fail("poplin::matMul", "the product is " + describe(), "Pass matrices whose inner dimensions are equal");
  return {rank == 3 ? a[0] : 1, left[0], left[1], right[1]};
}

Shape resultShape(const ProductSizes &sizes, std::size_t rank) {
  return rank == 3 ? Shape{sizes.groups, sizes.rows, sizes.columns} : Shape{sizes.rows, sizes.columns};
}

void checkTypes(const Tensor &A, const Tensor &B, const poplar::Type &out) {
  if (!poputil::detail::isFloating(A.elementType()) || A.elementType() != B.elementType() ||
      !poputil::detail::isFloating(out))
    fail("poplin::matMul", "the types are " + poputil::detail::typeName(A.elementType()) + ", " +
         poputil::detail::typeName(B.elementType()) + " and " + poputil::detail::typeName(out) +
         "; expected float or half, the same for both operands", "Cast the tensors");
}

void addMatMul(poplar::Graph &graph, const Tensor &A, const Tensor &B, const Tensor &out, std::size_t rank,
               Sequence &prog, const poplar::DebugContext &debugContext) {
  checkTypes(A, B, out.elementType());
  const auto sizes = sizesOf(A.shape(), B.shape(), rank);
  if (out.shape() != resultShape(sizes, rank))
    fail("poplin::matMul", "the output has the shape " + poputil::detail::describeShape(out.shape()) + "; expected " +
         poputil::detail::describeShape(resultShape(sizes, rank)), "Pass an output of that shape");
  const auto in_type = A.elementType(), out_type = out.elementType();
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "matMul"}, {A, B}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &sizes, const auto &in_type, const auto &out_type) {
        const auto a_size = sizes.rows * sizes.depth, b_size = sizes.depth * sizes.columns;
        std::vector<float> a_floats, b_floats, c_floats;
        const auto *a = static_cast<const float *>(arguments.inputs[0]);
        const auto *b = static_cast<const float *>(arguments.inputs[1]);
        if (in_type == poplar::HALF) {
          a_floats = poputil::detail::readFloats(in_type, a, sizes.groups * a_size);
          b_floats = poputil::detail::readFloats(in_type, b, sizes.groups * b_size);
          a = a_floats.data();
          b = b_floats.data();
        }
        auto *c = static_cast<float *>(arguments.outputs[0]);
        const auto c_size = sizes.rows * sizes.columns;
        if (out_type == poplar::HALF) {
          c_floats.resize(sizes.groups * c_size);
          c = c_floats.data();
        }
        // Rows of all groups are shared among the host's cores.
        const auto grain = std::max<std::size_t>(262144 / std::max<std::size_t>(sizes.depth * sizes.columns, 1), 1);
        poplar::detail::parallelFor(sizes.groups * sizes.rows, grain, [&](std::size_t begin, std::size_t end) {
          while (begin != end) {
            const auto group = begin / sizes.rows, row = begin % sizes.rows;
            const auto rows = std::min(end - begin, sizes.rows - row);
            poputil::detail::multiply(a + begin * sizes.depth, b + group * b_size, c + begin * sizes.columns, rows,
                                      sizes.depth, sizes.columns);
            begin += rows;
          }
        });
        if (out_type == poplar::HALF)
          poputil::detail::writeFloats(out_type, c, arguments.outputs[0], c_floats.size());
      }, sizes, in_type, out_type));
}

Tensor createResult(poplar::Graph &graph, const Tensor &A, const Tensor &B, const poplar::Type &type, std::size_t rank,
                    const poplar::DebugContext &debugContext) {
  const auto shape = resultShape(sizesOf(A.shape(), B.shape(), rank), rank);
  return poputil::detail::createLinear(graph, type, shape, {debugContext, "matMul/Out"});
}

void addAccumulation(poplar::Graph &graph, const Tensor &C, const Tensor &k, const Tensor &A, const Tensor &B,
                     std::size_t rank, Sequence &prog, const poplar::DebugContext &debugContext) {
  const auto product = createResult(graph, A, B, poplar::FLOAT, rank, debugContext);
  addMatMul(graph, A, B, product, rank, prog, debugContext);
  popops::scaledAddTo(graph, C, product, k, prog, {debugContext, "matMulAcc"});
}

}  // namespace

Tensor matMul(poplar::Graph &graph, const Tensor &A, const Tensor &B, Sequence &prog,
              const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *cache) {
  return matMul(graph, A, B, prog, A.elementType(), debugContext, options, cache);
}

// The products of matrices (rank 2) and of groups of matrices (rank 3).
#define PRODUCTS(name, rank)                                                                                        \
  Tensor name(poplar::Graph &graph, const Tensor &A, const Tensor &B, Sequence &prog,                               \
              const poplar::Type &outputType, const poplar::DebugContext &debugContext, const OptionFlags &options, \
              PlanningCache *) {                                                                                    \
    checkOptions("poplin::" #name, options, matmul_options);                                                     \
    const auto out = createResult(graph, A, B, outputType, rank, debugContext);                                     \
    addMatMul(graph, A, B, out, rank, prog, debugContext);                                                          \
    return out;                                                                                                     \
  }                                                                                                                 \
  void name##WithOutput(poplar::Graph &graph, const Tensor &A, const Tensor &B, Tensor &out, Sequence &prog,        \
                        const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *) {    \
    checkOptions("poplin::" #name "WithOutput", options, matmul_options);                                        \
    addMatMul(graph, A, B, out, rank, prog, debugContext);                                                          \
  }                                                                                                                 \
  void name##Acc(poplar::Graph &graph, const Tensor &C, const Tensor &k, const Tensor &A, const Tensor &B,          \
                 Sequence &prog, const poplar::DebugContext &debugContext, const OptionFlags &options,              \
                 PlanningCache *) {                                                                                 \
    checkOptions("poplin::" #name "Acc", options, matmul_options);                                               \
    addAccumulation(graph, C, k, A, B, rank, prog, debugContext);                                                   \
  }                                                                                                                 \
  void name##Acc(poplar::Graph &graph, const Tensor &C, float k, const Tensor &A, const Tensor &B, Sequence &prog,  \
                 const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *cache) {      \
    const auto scale = poputil::detail::constantScalar(graph, poplar::FLOAT, k, debugContext);                      \
    name##Acc(graph, C, scale, A, B, prog, debugContext, options, cache);                                           \
  }

PRODUCTS(matMul, 2)
PRODUCTS(matMulGrouped, 3)
#undef PRODUCTS

// Functions that create an operand of a matmul, for one data type or two.
#define CREATE_FOR_PRODUCT(name, TYPE, RANK, SHAPE)                                                                \
  Tensor name(poplar::Graph &graph, const poplar::Type &inputType, const poplar::Type &outputType,                 \
              const Shape &aShape, const Shape &bShape, const poplar::DebugContext &debugContext,                  \
              const OptionFlags &options, PlanningCache *) {                                                       \
    const ProductSizes sizes = sizesOf(aShape, bShape, RANK);                                                             \
    (void)inputType, (void)outputType, (void)sizes;                                                                \
    checkOptions("poplin::" #name, options, matmul_options);                                                    \
    return poputil::detail::createLinear(graph, TYPE, SHAPE, debugContext);                                        \
  }
#define CREATE_FOR_PRODUCT_OF_ONE_TYPE(name)                                                                       \
  Tensor name(poplar::Graph &graph, const poplar::Type &dataType, const Shape &aShape, const Shape &bShape,        \
              const poplar::DebugContext &debugContext, const OptionFlags &options, PlanningCache *cache) {        \
    return name(graph, dataType, dataType, aShape, bShape, debugContext, options, cache);                          \
  }

CREATE_FOR_PRODUCT(createMatMulInputLHS, inputType, 2, aShape)
CREATE_FOR_PRODUCT(createMatMulInputRHS, inputType, 2, bShape)
CREATE_FOR_PRODUCT(createMatMulOutput, outputType, 2, resultShape(sizes, 2))
CREATE_FOR_PRODUCT(createMatMulGroupedInputLHS, inputType, 3, aShape)
CREATE_FOR_PRODUCT(createMatMulGroupedInputRHS, inputType, 3, bShape)
CREATE_FOR_PRODUCT(createMatMulGroupedOutput, outputType, 3, resultShape(sizes, 3))
CREATE_FOR_PRODUCT_OF_ONE_TYPE(createMatMulInputLHS)
CREATE_FOR_PRODUCT_OF_ONE_TYPE(createMatMulInputRHS)
CREATE_FOR_PRODUCT_OF_ONE_TYPE(createMatMulOutput)
#undef CREATE_FOR_PRODUCT_OF_ONE_TYPE
#undef CREATE_FOR_PRODUCT

#define REPORT_PLAN(name, dimensions)                                                                              \
  void name(std::ostream &out, const poplar::Graph &, const poplar::Type &, const poplar::Type &,                  \
            const Shape &aShape, const Shape &bShape, const OptionFlags &options, PlanningCache *) {               \
    checkOptions("poplin::" #name, options, matmul_options);                                                       \
    out << "Matmul to " << poputil::detail::describeShape(resultShape(sizesOf(aShape, bShape, dimensions), dimensions)) \
        << ": one kernel, without a plan\n";                                                                       \
  }
REPORT_PLAN(matMulReportPlan, 2)
REPORT_PLAN(matMulGroupedReportPlan, 3)
#undef REPORT_PLAN

Tensor preArrangeMatMulInputRHS(poplar::Graph &, const Shape &, const Tensor &B, Sequence &, const poplar::Type &,
                                const poplar::DebugContext &, const OptionFlags &options, PlanningCache *) {
  checkOptions("poplin::preArrangeMatMulInputRHS", options, matmul_options);
  return B;
}

Tensor preArrangeMatMulInputRHS(poplar::Graph &graph, const Shape &aShape, const Tensor &B, Sequence &prog,
                                const poplar::DebugContext &debugContext, const OptionFlags &options,
                                PlanningCache *cache) {
  return preArrangeMatMulInputRHS(graph, aShape, B, prog, B.elementType(), debugContext, options, cache);
}

Tensor preArrangeMatMulGroupedInputRHS(poplar::Graph &graph, const Shape &aShape, const Tensor &B, Sequence &prog,
                                       const poplar::Type &outputType, const poplar::DebugContext &debugContext,
                                       const OptionFlags &options, PlanningCache *cache) {
  return preArrangeMatMulInputRHS(graph, aShape, B, prog, outputType, debugContext, options, cache);
}

Tensor transposeGroupedMatrix(const Tensor &A) { return A.dimShuffle({0, 2, 1}); }

}  // namespace poplin
