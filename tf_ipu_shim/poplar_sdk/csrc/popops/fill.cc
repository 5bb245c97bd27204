// Fills tensors with a value.
#include <algorithm>
#include <poplar/detail/compute_sets.hpp>
#include <popops/Fill.hpp>
#include <popops/Zero.hpp>
#include <poputil/detail/kernels.hpp>

namespace popops {

namespace {

void checkTile(const poplar::Graph &graph, unsigned tile) {
  const unsigned tiles = graph.getTarget().getNumTiles();
  if (tile >= tiles)
    poputil::detail::fail("popops::fill", "the tile is " + std::to_string(tile) + "; the graph has " +
                          std::to_string(tiles) + " tiles", "Pass a lower one");
}

}  // namespace

template <typename FillValueType>
void fill(poplar::Graph &graph, const poplar::Tensor &t, poplar::program::Sequence &prog, FillValueType fillValue,
          const poplar::DebugContext &debugContext) {
  const auto elements = t.numElements();
  const auto type = t.elementType();
  poputil::detail::visitType(type, [](auto) {});
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "Fill"}, {}, {t},
      poputil::detail::Kernel::of([](const poputil::detail::KernelArguments &arguments, const auto &elements,
                                     const auto &type, const auto &fillValue) {
        poputil::detail::visitType(type, [&](auto tag) {
          using T = typename decltype(tag)::type;
          T value;
          poputil::detail::store(value, fillValue);
          std::fill_n(static_cast<T *>(arguments.outputs[0]), elements, value);
        });
      }, elements, type, fillValue),
      poputil::detail::elementwiseCost());
}

template <typename FillValueType>
void fill(poplar::Graph &graph, poplar::Tensor t, const std::vector<poplar::Interval> &tileRegions, unsigned tile,
          poplar::ComputeSet fillCS, FillValueType fillValue) {
  checkTile(graph, tile);
  if (tileRegions.empty()) return;
  poplar::program::Sequence steps;
  fill(graph, concat(t.flatten().slices(tileRegions)), steps, fillValue);
  poplar::detail::addToComputeSet(graph, fillCS, steps);
}

template <typename FillValueType>
void fill(poplar::Graph &graph, const poplar::Tensor &t, unsigned tile, poplar::ComputeSet fillCS,
          FillValueType fillValue) {
  const auto mapping = graph.getTileMapping(t);
  checkTile(graph, tile);
  fill(graph, t, mapping[tile], tile, fillCS, fillValue);
}

template <typename FillValueType>
void fill(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::vector<poplar::Interval>> &mapping,
          poplar::ComputeSet fillCS, FillValueType fillValue) {
  for (unsigned tile = 0; tile < mapping.size(); ++tile) fill(graph, t, mapping[tile], tile, fillCS, fillValue);
}

#define INSTANTIATE_FILL(T)                                                                                  \
  template void fill<T>(poplar::Graph &, const poplar::Tensor &, poplar::program::Sequence &, T,             \
                        const poplar::DebugContext &);                                                       \
  template void fill<T>(poplar::Graph &, poplar::Tensor, const std::vector<poplar::Interval> &, unsigned,    \
                        poplar::ComputeSet, T);                                                              \
  template void fill<T>(poplar::Graph &, const poplar::Tensor &, unsigned, poplar::ComputeSet, T);           \
  template void fill<T>(poplar::Graph &, const poplar::Tensor &,                                             \
                        const std::vector<std::vector<poplar::Interval>> &, poplar::ComputeSet, T);
INSTANTIATE_FILL(float)
INSTANTIATE_FILL(double)
INSTANTIATE_FILL(bool)
INSTANTIATE_FILL(char)
INSTANTIATE_FILL(signed char)
INSTANTIATE_FILL(unsigned char)
INSTANTIATE_FILL(short)
INSTANTIATE_FILL(unsigned short)
INSTANTIATE_FILL(int)
INSTANTIATE_FILL(unsigned)
INSTANTIATE_FILL(long)
INSTANTIATE_FILL(unsigned long)
INSTANTIATE_FILL(long long)
INSTANTIATE_FILL(unsigned long long)
#undef INSTANTIATE_FILL

void zero(poplar::Graph &graph, const poplar::Tensor &t, poplar::program::Sequence &prog,
          const poplar::DebugContext &debugContext) {
  fill(graph, t, prog, 0, {debugContext, "Zero"});
}

void zero(poplar::Graph &graph, poplar::Tensor t, const std::vector<poplar::Interval> &tileRegions, unsigned tile,
          poplar::ComputeSet zeroCS) {
  fill(graph, t, tileRegions, tile, zeroCS, 0);
}

void zero(poplar::Graph &graph, const poplar::Tensor &t, unsigned tile, poplar::ComputeSet zeroCS) {
  fill(graph, t, tile, zeroCS, 0);
}

void zero(poplar::Graph &graph, const poplar::Tensor &t, const std::vector<std::vector<poplar::Interval>> &mapping,
          poplar::ComputeSet zeroCS) {
  fill(graph, t, mapping, zeroCS, 0);
}

}  // namespace popops
