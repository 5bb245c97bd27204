// Fills tensors with a value.
#include <algorithm>
#include <popops/Fill.hpp>
#include <popops/Zero.hpp>
#include <poputil/detail/kernels.hpp>

namespace popops {

template <typename FillValueType>
void fill(poplar::Graph &graph, const poplar::Tensor &t, poplar::program::Sequence &prog, FillValueType fillValue,
          const poplar::DebugContext &debugContext) {
  const auto elements = t.numElements();
  const auto type = t.elementType();
  poputil::detail::visitType(type, [](auto) {});
  poputil::detail::addKernelIfAny(
      graph, prog, {debugContext, "Fill"}, {}, {t},
      [elements, type, fillValue](const poputil::detail::KernelArguments &arguments) {
        poputil::detail::visitType(type, [&](auto tag) {
          using T = typename decltype(tag)::type;
          T value;
          poputil::detail::store(value, fillValue);
          std::fill_n(static_cast<T *>(arguments.outputs[0]), elements, value);
        });
      },
      poputil::detail::elementwiseCost());
}

#define INSTANTIATE_FILL(T)                                                                                  \
  template void fill<T>(poplar::Graph &, const poplar::Tensor &, poplar::program::Sequence &, T,             \
                        const poplar::DebugContext &);
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

}  // namespace popops
