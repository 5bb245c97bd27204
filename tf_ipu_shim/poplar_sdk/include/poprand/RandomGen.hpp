// Draws random tensors and dropout masks. Values depend only on the seed, its modifier and the element's index, so a
// seed produces the same values on every machine. An IPU produces other values. Without a seed each call draws from the
// state that setSeed() sets. Results have the mapping of the reference.
#ifndef poprand_RandomGen_hpp
#define poprand_RandomGen_hpp

#include <cmath>
#include <cstdint>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

namespace poprand {

// The input times `scale` where it is kept, else 0. A seed is two unsigned integers.
poplar::Tensor dropout(poplar::Graph &graph, const poplar::Tensor *seed, const uint32_t seedModifier,
                       const poplar::Tensor &input, const poplar::Tensor &reference, double keepProbability,
                       double scale, poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});
poplar::Tensor dropout(poplar::Graph &graph, const poplar::Tensor *seed, const uint32_t seedModifier,
                       const poplar::Tensor &input, const poplar::Tensor &reference, double keepProbability,
                       double scale, bool outputClonesRef, poplar::program::Sequence &prog,
                       const poplar::DebugContext &debugContext = {});

// A mask of the reference's shape, which broadcasts to the input's.
poplar::Tensor shapedDropout(poplar::Graph &graph, const poplar::Tensor *seed, const uint32_t seedModifier,
                             const poplar::Tensor &input, const poplar::Tensor &reference, double keepProbability,
                             double scale, poplar::program::Sequence &prog,
                             const poplar::DebugContext &debugContext = {});

// Between minVal and maxVal, both included, for float, half and int.
poplar::Tensor uniform(poplar::Graph &graph, const poplar::Tensor *seed, uint32_t seedModifier,
                       const poplar::Tensor &reference, const poplar::Type &outType, double minVal, double maxVal,
                       poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

// Values whose logarithm is uniform.
poplar::Tensor logUniform(poplar::Graph &graph, const poplar::Tensor *seed, uint32_t seedModifier,
                          const poplar::Tensor &reference, const poplar::Type &outType, double minVal, double maxVal,
                          poplar::program::Sequence &prog, double base = M_E,
                          const poplar::DebugContext &debugContext = {});

// 1 with probability `prob`, else 0, for float, half and int.
poplar::Tensor bernoulli(poplar::Graph &graph, const poplar::Tensor *seed, uint32_t seedModifier,
                         const poplar::Tensor &reference, const poplar::Type &outType, double prob,
                         poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

poplar::Tensor normal(poplar::Graph &graph, const poplar::Tensor *seed, uint32_t seedModifier,
                      const poplar::Tensor &reference, const poplar::Type &outType, double mean, double stdDev,
                      poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

// A normal distribution of which values farther than alpha * stdDev from the mean are drawn again.
poplar::Tensor truncatedNormal(poplar::Graph &graph, const poplar::Tensor *seed, uint32_t seedModifier,
                               const poplar::Tensor &reference, const poplar::Type &outType, double mean,
                               double stdDev, double alpha, poplar::program::Sequence &prog,
                               const poplar::DebugContext &debugContext = {});

// Sets the state of functions without a seed from two unsigned integers.
void setSeed(poplar::Graph &graph, const poplar::Tensor &masterSeed, uint32_t seedModifier,
             poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

}  // namespace poprand

#endif
