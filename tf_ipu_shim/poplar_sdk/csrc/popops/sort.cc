// Sorts and top-k along a dimension.
#include <numeric>
#include <ostream>
#include <popops/Sort.hpp>
#include <popops/TopK.hpp>

#include "poputil/library.hpp"

namespace popops {

using namespace poputil::library;

namespace {

// Orders values; NaN comes after every number.
template <class T>
bool comesBefore(const T &left, const T &right) {
  const auto a = poputil::detail::load(left), b = poputil::detail::load(right);
  if constexpr (std::is_floating_point_v<decltype(a)>) {
    if (std::isnan(b)) return !std::isnan(a);
    if (std::isnan(a)) return false;
  }
  return a < b;
}

// The indices of a row's `count` first elements by `precedes`; equal elements stay in order.
template <class Precedes>
std::vector<std::uint32_t> firstIndices(std::size_t size, std::size_t count, Precedes precedes) {
  std::vector<std::uint32_t> indices(size);
  std::iota(indices.begin(), indices.end(), 0);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (precedes(a, b)) return true;
    return !precedes(b, a) && a < b;
  };
  if (count < size / 4)
    std::partial_sort(indices.begin(), indices.begin() + count, indices.end(), before);
  else
    std::sort(indices.begin(), indices.end(), before);
  indices.resize(count);
  return indices;
}

// The rows of a tensor of keys, and what is taken of each.
struct Rows {
  poplar::Type type;
  std::size_t size, count;
  unsigned k;
  bool largest;
  SortOrder order;
};

Rows rowsOf(const Tensor &keys, const TopKParams &params) {
  const std::size_t size = keys.dim(keys.rank() - 1);
  return {keys.elementType(), size, keys.numElements() / std::max<std::size_t>(size, 1), params.k, params.largest,
          params.sortOrder};
}

template <class T>
std::vector<std::uint32_t> topIndices(const T *row, const Rows &rows) {
  const bool largest = rows.largest;
  auto indices = firstIndices(rows.size, rows.k, [row, largest](std::uint32_t a, std::uint32_t b) {
    return largest ? comesBefore(row[b], row[a]) : comesBefore(row[a], row[b]);
  });
  if (rows.order == SortOrder::NONE) {
    std::sort(indices.begin(), indices.end());
  } else if ((rows.order == SortOrder::DESCENDING) != largest) {
    std::stable_sort(indices.begin(), indices.end());
    std::stable_sort(indices.begin(), indices.end(), [row, largest](std::uint32_t a, std::uint32_t b) {
      return largest ? comesBefore(row[a], row[b]) : comesBefore(row[b], row[a]);
    });
  }
  return indices;
}

// Calls `visit` with each row and the indices that it takes of it, on the host's cores.
template <class Visit>
void forTopRows(const Rows &rows, const void *data, Visit visit) {
  const auto grain = std::max<std::size_t>(16384 / std::max<std::size_t>(rows.size, 1), 1);
  poputil::detail::visitType(rows.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto *elements = static_cast<const T *>(data);
    poplar::detail::parallelFor(rows.count, grain, [&](std::size_t begin, std::size_t end) {
      for (; begin != end; ++begin) visit(begin, topIndices(elements + begin * rows.size, rows));
    });
  });
}

// Copies the elements at `indices` of a row.
void takeElements(const poplar::Type &type, const void *from, std::size_t size, std::size_t row,
                  const std::vector<std::uint32_t> &indices, void *to) {
  poputil::detail::visitSize(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto *source = static_cast<const T *>(from) + row * size;
    auto *target = static_cast<T *>(to) + row * indices.size();
    for (std::size_t i = 0; i != indices.size(); ++i) target[i] = source[indices[i]];
  });
}

Tensor createTopKOutput(poplar::Graph &graph, const poplar::Type &type, const Tensor &keys, const TopKParams &params,
                        const poplar::DebugContext &debugContext) {
  if (keys.rank() == 0 || params.k > keys.dim(keys.rank() - 1))
    fail("popops::topK", "k is " + std::to_string(params.k) + " for the shape " +
         poputil::detail::describeShape(keys.shape()), "Pass a k of at most the last dimension");
  auto shape = keys.shape();
  shape.back() = params.k;
  return poputil::detail::createLinear(graph, type, shape, debugContext);
}

void checkSortable(const Tensor &k, const Tensor &v, unsigned dim) {
  if (dim >= v.rank())
    fail("popops::sort", "dim is " + std::to_string(dim) + " for a tensor of rank " + std::to_string(v.rank()),
         "Pass a dimension of the tensor");
  if (k.shape() != v.shape())
    fail("popops::sortKeyValue", "the keys have the shape " + poputil::detail::describeShape(k.shape()) +
         " and the values " + poputil::detail::describeShape(v.shape()) + "; expected the same", "Reshape one of them");
}

// Writes the sorted keys and values, the dimension rolled to the end.
void addSort(poplar::Graph &graph, const Tensor &k, const Tensor &v, const std::vector<Tensor> &outs,
             const std::vector<bool> &outIsKey, Sequence &prog,
             const poplar::DebugContext &debugContext) {
  const auto rows = rowsOf(k, TopKParams(k.dim(k.rank() - 1), false, SortOrder::ASCENDING, true));
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "Sort"}, {k, v}, outs,
      Kernel::of([](const KernelArguments &arguments, const auto &rows, const auto &type, const auto &outIsKey) {
        forTopRows(rows, arguments.inputs[0], [&](std::size_t row, const std::vector<std::uint32_t> &indices) {
          for (std::size_t i = 0; i != outIsKey.size(); ++i)
            takeElements(outIsKey[i] ? rows.type : type, arguments.inputs[outIsKey[i] ? 0 : 1], rows.size, row, indices,
                         arguments.outputs[i]);
        });
      }, rows, v.elementType(), outIsKey));
}

}  // namespace

std::ostream &operator<<(std::ostream &os, const TopKParams &params) {
  return os << "{k=" << params.k << ", largest=" << (params.largest ? "true" : "false")
            << ", sortOrder=" << params.sortOrder << ", stableSort=" << (params.stableSort ? "true" : "false") << "}";
}

Tensor createTopKInput(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                       const TopKParams &, const poplar::DebugContext &debugContext) {
  return poputil::detail::createLinear(graph, type, shape, debugContext);
}

Tensor topK(poplar::Graph &graph, Sequence &prog, const Tensor &t, const TopKParams &params,
            const poplar::DebugContext &debugContext) {
  return topKKeyValue(graph, prog, t, t, params, debugContext).first;
}

std::pair<Tensor, Tensor> topKKeyValue(poplar::Graph &graph, Sequence &prog, const Tensor &keys,
                                       const Tensor &values, const TopKParams &params,
                                       const poplar::DebugContext &debugContext) {
  if (keys.shape() != values.shape())
    fail("popops::topKKeyValue", "the keys have the shape " + poputil::detail::describeShape(keys.shape()) +
         " and the values " + poputil::detail::describeShape(values.shape()) + "; expected the same",
         "Reshape one of them");
  const poplar::DebugContext name{debugContext, "TopK"};
  const auto top = createTopKOutput(graph, keys.elementType(), keys, params, name);
  const auto moved = createTopKOutput(graph, values.elementType(), keys, params, name);
  poputil::detail::addKernelIfAny(
      graph, prog, name, {keys, values}, {top, moved},
      Kernel::of([](const KernelArguments &arguments, const auto &rows, const auto &type) {
        forTopRows(rows, arguments.inputs[0], [&](std::size_t row, const std::vector<std::uint32_t> &indices) {
          takeElements(rows.type, arguments.inputs[0], rows.size, row, indices, arguments.outputs[0]);
          takeElements(type, arguments.inputs[1], rows.size, row, indices, arguments.outputs[1]);
        });
      }, rowsOf(keys, params), values.elementType()));
  return {top, moved};
}

std::pair<Tensor, Tensor> topKWithPermutation(poplar::Graph &graph, Sequence &prog, const Tensor &t,
                                              const TopKParams &params, const poplar::DebugContext &debugContext) {
  const poplar::DebugContext name{debugContext, "TopK"};
  const auto top = createTopKOutput(graph, t.elementType(), t, params, name);
  const auto permutation = createTopKOutput(graph, poplar::UNSIGNED_INT, t, params, name);
  poputil::detail::addKernelIfAny(
      graph, prog, name, {t}, {top, permutation}, Kernel::of([](const KernelArguments &arguments, const auto &rows) {
        auto *out = static_cast<std::uint32_t *>(arguments.outputs[1]);
        forTopRows(rows, arguments.inputs[0], [&](std::size_t row, const std::vector<std::uint32_t> &indices) {
          takeElements(rows.type, arguments.inputs[0], rows.size, row, indices, arguments.outputs[0]);
          std::copy(indices.begin(), indices.end(), out + row * indices.size());
        });
      }, rowsOf(t, params)));
  return {top, permutation};
}

Tensor sort(poplar::Graph &graph, const Tensor &t, unsigned dim, Sequence &prog,
            const poplar::DebugContext &debugContext) {
  return sortKeyValue(graph, t, t, dim, prog, debugContext);
}

void sortInPlace(poplar::Graph &graph, const Tensor &t, unsigned dim, Sequence &prog,
                 const poplar::DebugContext &debugContext) {
  checkSortable(t, t, dim);
  const auto rolled = t.dimRoll(dim, t.rank() - 1);
  addSort(graph, rolled, rolled, {rolled}, {true}, prog, debugContext);
}

Tensor sortKeyValue(poplar::Graph &graph, const Tensor &k, const Tensor &v, unsigned dim,
                    Sequence &prog, const poplar::DebugContext &debugContext) {
  checkSortable(k, v, dim);
  const auto out = graph.clone(v, {debugContext, "Sort/Out"});
  const auto last = v.rank() - 1;
  addSort(graph, k.dimRoll(dim, last), v.dimRoll(dim, last), {out.dimRoll(dim, last)}, {false}, prog, debugContext);
  return out;
}

void sortKeyValueInPlace(poplar::Graph &graph, const Tensor &k, const Tensor &v, unsigned dim,
                         Sequence &prog, const poplar::DebugContext &debugContext) {
  checkSortable(k, v, dim);
  const auto last = v.rank() - 1;
  const auto keys = k.dimRoll(dim, last), values = v.dimRoll(dim, last);
  addSort(graph, keys, values, {keys, values}, {true, false}, prog, debugContext);
}

}  // namespace popops
