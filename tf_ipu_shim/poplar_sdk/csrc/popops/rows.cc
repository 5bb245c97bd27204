// Implements one-hot rows, ranges, one element per row, image normalisation, and tests for NaN or all true.
#include <numeric>
#include <popops/AllTrue.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Encoding.hpp>
#include <popops/NaN.hpp>
#include <popops/NormaliseImage.hpp>
#include <popops/Reduce.hpp>
#include <popops/SelectScalarFromRows.hpp>
#include <popops/UpdateScalarInRows.hpp>

#include "poputil/library.hpp"

namespace popops {

using namespace poputil::library;

namespace {

std::vector<std::size_t> allDims(const Tensor &tensor) {
  std::vector<std::size_t> dims(tensor.rank());
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

// An index of type INT or UNSIGNED_INT; a negative one lies outside of every row.
std::uint32_t indexAt(const void *indices, std::size_t i) { return static_cast<const std::uint32_t *>(indices)[i]; }

void checkIndices(const std::string &function, const Tensor &matrix, const Tensor &indices) {
  if (matrix.rank() != 2 || indices.rank() != 1 || indices.dim(0) != matrix.dim(0))
    fail(function, "the shapes are " + poputil::detail::describeShape(matrix.shape()) + " and " +
         poputil::detail::describeShape(indices.shape()), "Pass a matrix and one index for each of its rows");
  if (indices.elementType() != poplar::UNSIGNED_INT && indices.elementType() != poplar::INT)
    fail(function, "the indices have the type " + poputil::detail::typeName(indices.elementType()) +
         "; expected unsigned int or int", "Cast them");
}

// Adds a kernel that calls `Visit::run` for each row of a matrix of float or half. It gets the tag of the type, the row's
// number, its index, and the number of columns.
template <class Visit>
void addForRows(const std::string &function, poplar::Graph &graph, const Tensor &matrix, const Tensor &indices,
                const std::vector<Tensor> &inputs, const Tensor &out, Sequence &prog,
                const poplar::DebugContext &debugContext, Visit) {
  checkIndices(function, matrix, indices);
  if (!poputil::detail::isFloating(matrix.elementType()))
    fail(function, "params is neither float nor half", "Cast it");
  const auto rows = matrix.dim(0), columns = matrix.dim(1);
  const auto type = matrix.elementType();
  poputil::detail::addKernelIfAny(graph, prog, debugContext, inputs, {out},
                                  Kernel::of([](const KernelArguments &arguments, const auto &type, const auto &rows,
                                                const auto &columns, const auto &last) {
                                    poputil::detail::visitType(type, [&](auto tag) {
                                      for (std::size_t row = 0; row != rows; ++row)
                                        Visit::run(tag, arguments, row, indexAt(arguments.inputs[last], row), columns);
                                    });
                                  }, type, rows, columns, inputs.size() - 1));
}

struct SelectScalar {
  template <class Tag>
  static void run(Tag, const KernelArguments &arguments, std::size_t row, std::uint32_t index, std::size_t columns) {
    using T = typename Tag::type;
    const auto *values = static_cast<const T *>(arguments.inputs[0]);
    auto &selected = static_cast<T *>(arguments.outputs[0])[row];
    if (index < columns) selected = values[row * columns + index];
    else poputil::detail::store(selected, index == MASKED_LABEL_CODE ? 0.0f : std::nanf(""));
  }
};

struct UpdateScalar {
  template <class Tag>
  static void run(Tag, const KernelArguments &arguments, std::size_t row, std::uint32_t index, std::size_t columns) {
    using T = typename Tag::type;
    auto *values = static_cast<T *>(arguments.outputs[0]) + row * columns;
    if (index < columns) {
      poputil::detail::store(values[index], poputil::detail::load(values[index]) - 1);
    } else if (index != MASKED_LABEL_CODE) {
      for (std::size_t i = 0; i != columns; ++i) poputil::detail::store(values[i], std::nanf(""));
    }
  }
};

template <class Integer>
void addIota(poplar::Graph &graph, const Tensor &t, Integer start, const poplar::Type &type, Sequence &prog,
             const poplar::DebugContext &debugContext) {
  if (t.rank() > 1 || t.elementType() != type)
    fail("popops::iota", "the tensor has the shape " + poputil::detail::describeShape(t.shape()) + " and the type " +
         poputil::detail::typeName(t.elementType()) + "; expected a vector of " + poputil::detail::typeName(type),
         "Pass a vector of that type");
  const auto count = t.numElements();
  poputil::detail::addKernelIfAny(graph, prog, {debugContext, "Iota"}, {}, {t},
                                  Kernel::of([](const KernelArguments &arguments, const auto &start,
                                                const auto &count) {
                                    auto *out = static_cast<std::uint32_t *>(arguments.outputs[0]);
                                    std::iota(out, out + count, static_cast<std::uint32_t>(start));
                                  }, start, count),
                                  poputil::detail::elementwiseCost());
}

}  // namespace

void encodeOneHot(poplar::Graph &graph, const Tensor &indices, const Tensor &encoded, Sequence &prog,
                  const poplar::DebugContext &debugContext) {
  const auto type = encoded.elementType();
  const auto constant = [&](int value) {
    const auto tensor = graph.addConstant(type, {}, value, debugContext);
    graph.setTileMapping(tensor, 0);
    return tensor;
  };
  encodeOneHot(graph, indices, encoded, prog, constant(1), constant(0), debugContext);
}

void encodeOneHot(poplar::Graph &graph, const Tensor &indices, const Tensor &encoded, Sequence &prog, const Tensor &on,
                  const Tensor &off, const poplar::DebugContext &debugContext) {
  checkIndices("popops::encodeOneHot", encoded, indices);
  if (on.elementType() != encoded.elementType() || off.elementType() != encoded.elementType() ||
      on.numElements() != 1 || off.numElements() != 1)
    fail("popops::encodeOneHot", "on and off are not scalars of the type " +
         poputil::detail::typeName(encoded.elementType()), "Cast or reshape them");
  const auto rows = encoded.dim(0), columns = encoded.dim(1);
  const auto type = encoded.elementType();
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "OneHot"}, {indices, on, off}, {encoded},
      Kernel::of([](const KernelArguments &arguments, const auto &rows, const auto &columns, const auto &type) {
        poputil::detail::visitSize(type, [&](auto tag) {
          using T = typename decltype(tag)::type;
          auto *out = static_cast<T *>(arguments.outputs[0]);
          std::fill_n(out, rows * columns, *static_cast<const T *>(arguments.inputs[2]));
          for (std::size_t row = 0; row != rows; ++row) {
            const auto index = indexAt(arguments.inputs[0], row);
            if (index < columns) out[row * columns + index] = *static_cast<const T *>(arguments.inputs[1]);
          }
        });
      }, rows, columns, type));
}

void iota(poplar::Graph &graph, const Tensor &t, unsigned startInteger, Sequence &prog,
          const poplar::DebugContext &debugContext) {
  addIota(graph, t, startInteger, poplar::UNSIGNED_INT, prog, debugContext);
}

void iota(poplar::Graph &graph, const Tensor &t, int startInteger, Sequence &prog,
          const poplar::DebugContext &debugContext) {
  addIota(graph, t, startInteger, poplar::INT, prog, debugContext);
}

Tensor allTrue(poplar::Graph &graph, Tensor A, Sequence &prog, const poplar::DebugContext &debugContext) {
  if (A.elementType() != poplar::BOOL)
    fail("popops::allTrue", "the tensor has the type " + poputil::detail::typeName(A.elementType()) + "; expected bool",
         "Compare it with 0");
  return reduce(graph, A, allDims(A), {Operation::LOGICAL_AND}, prog, {debugContext, "allTrue"});
}

Tensor hasNaN(poplar::Graph &graph, const Tensor &src, Sequence &prog, const poplar::DebugContext &debugContext) {
  const auto found = map(graph, expr::UnaryOpType::IS_NAN, src, prog, {debugContext, "hasNaN"});
  return reduce(graph, found, allDims(found), {Operation::LOGICAL_OR}, prog, {debugContext, "hasNaN"});
}

Tensor hasNaNOrInf(poplar::Graph &graph, const Tensor &src, Sequence &prog, const poplar::DebugContext &debugContext) {
  const poplar::DebugContext name{debugContext, "hasNaNOrInf"};
  const auto found = map(graph, expr::Not(expr::IsFinite(expr::_1)), {src}, prog, name);
  return reduce(graph, found, allDims(found), {Operation::LOGICAL_OR}, prog, name);
}

Tensor selectScalarFromRows(poplar::Graph &graph, const Tensor &params, const Tensor &indices, Sequence &prog,
                            const poplar::DebugContext &debugContext) {
  checkIndices("popops::selectScalarFromRows", params, indices);
  const poplar::DebugContext name{debugContext, "selectScalarFromRows"};
  const auto out = poputil::detail::createLinear(graph, params.elementType(), {params.dim(0)}, name);
  addForRows("popops::selectScalarFromRows", graph, params, indices, {params, indices}, out, prog, name,
             SelectScalar());
  return out;
}

void updateScalarInRows(poplar::Graph &graph, const Tensor &params, const Tensor &indices, Sequence &program,
                        const poplar::DebugContext &debugContext) {
  addForRows("popops::updateScalarInRows", graph, params, indices, {indices}, params, program,
             {debugContext, "updateScalarInRows"}, UpdateScalar());
}

Tensor createNormaliseImageInput(poplar::Graph &graph, const poplar::Type &type,
                                 const poplar::ArrayRef<std::size_t> shape, const poplar::DebugContext &debugContext) {
  if (shape.empty() || shape.back() != 3)
    fail("popops::createNormaliseImageInput", "the last dimension is not 3", "Pass an image of three channels");
  return poputil::detail::createLinearWithWhole(graph, type, shape.cloneAsVector(), 1, debugContext);
}

Tensor normaliseImage(poplar::Graph &graph, Sequence &seq, Tensor tIn, float inScale, Tensor offsets, Tensor scales,
                      const poplar::DebugContext &debugContext) {
  if (tIn.rank() == 0 || tIn.dim(tIn.rank() - 1) != 3)
    fail("popops::normaliseImage", "the last dimension is not 3", "Pass an image of three channels");
  const auto in_type = tIn.elementType();
  const auto out_type = in_type == poplar::UNSIGNED_CHAR ? poplar::HALF : in_type;
  if (offsets.shape() != std::vector<std::size_t>{3} || scales.shape() != offsets.shape() ||
      offsets.elementType() != out_type || scales.elementType() != out_type)
    fail("popops::normaliseImage", "offsets or scales are not 3 elements of type " +
         poputil::detail::typeName(out_type), "Cast or reshape them");
  auto shape = tIn.shape();
  shape.back() = 4;
  const auto pixels = tIn.numElements() / 3;
  const auto out = poputil::detail::createLinearWithWhole(graph, out_type, shape, 1, {debugContext, "normaliseImage"});
  poputil::detail::addKernelIfAny(
      graph, seq, {debugContext, "normaliseImage"}, {tIn, offsets, scales}, {out},
      Kernel::of([](const KernelArguments &arguments, const auto &in_type, const auto &out_type, const auto &pixels,
                    const auto &inScale) {
        const auto offset = poputil::detail::readFloats(out_type, arguments.inputs[1], 3);
        const auto scale = poputil::detail::readFloats(out_type, arguments.inputs[2], 3);
        std::vector<float> result(4 * pixels);
        poputil::detail::visitType(in_type, [&](auto tag) {
          const auto *in = static_cast<const typename decltype(tag)::type *>(arguments.inputs[0]);
          for (std::size_t i = 0; i != 3 * pixels; ++i)
            result[i / 3 * 4 + i % 3] =
                (static_cast<float>(poputil::detail::load(in[i])) * inScale - offset[i % 3]) * scale[i % 3];
        });
        poputil::detail::writeFloats(out_type, result.data(), arguments.outputs[0], result.size());
      }, in_type, out_type, pixels, inScale));
  return out;
}

}  // namespace popops
