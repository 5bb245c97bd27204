// Creates evenly spaced values, and grids of coordinates from two vectors.
#ifndef poplin_MeshGrid_hpp
#define poplin_MeshGrid_hpp

#include <cstddef>
#include <poplar/Graph.hpp>
#include <vector>

namespace poplin {

// A constant vector of `count` values from `left` to `right`, both included, at equal distances.
poplar::Tensor linspace(poplar::Graph &graph, const poplar::Type &type, float left, float right, size_t count,
                        const poplar::DebugContext &debugContext = {});

// Views of shape {size of y, size of x} with each point's x, and its y.
std::vector<poplar::Tensor> meshgrid2d(poplar::Graph &graph, poplar::Tensor x, poplar::Tensor y);

}  // namespace poplin

#endif
