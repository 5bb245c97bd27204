// The kind of a sparse matrix: single elements, or dense blocks of a given size.
#ifndef popsparse_SparsityParams_hpp
#define popsparse_SparsityParams_hpp

#include <array>
#include <cstddef>
#include <iosfwd>

namespace popsparse {
namespace dynamic {

enum class SparsityType { Element, Block };
std::ostream &operator<<(std::ostream &os, const SparsityType &type);

enum class SparsityStructure { Unstructured };
std::ostream &operator<<(std::ostream &os, const SparsityStructure &structure);

// The type follows from the block's size.
struct SparsityParams {
  SparsityType type;
  SparsityStructure structure;
  std::array<std::size_t, 2> blockDimensions;

  SparsityParams(SparsityType = SparsityType::Element,
                 SparsityStructure sparsityStructure = SparsityStructure::Unstructured,
                 std::array<std::size_t, 2> dimensions = {1, 1})
      : type(dimensions[0] * dimensions[1] == 1 ? SparsityType::Element : SparsityType::Block),
        structure(sparsityStructure),
        blockDimensions(dimensions) {}

  friend bool operator<(const SparsityParams &a, const SparsityParams &b) {
    return a.blockDimensions < b.blockDimensions;
  }
  friend bool operator==(const SparsityParams &a, const SparsityParams &b) {
    return a.blockDimensions == b.blockDimensions;
  }
  friend bool operator!=(const SparsityParams &a, const SparsityParams &b) { return !(a == b); }
};
std::ostream &operator<<(std::ostream &os, const SparsityParams &params);

}  // namespace dynamic
}  // namespace popsparse

#endif
