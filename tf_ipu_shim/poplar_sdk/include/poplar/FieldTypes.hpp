// Lists the memory layouts that a vertex's vectors may have. On the CPU each is a pointer and a size. A layout
// determines which members a codelet may use, and how many bytes the field needs in the vertex's state on an IPU.
#ifndef POPLAR_FIELD_TYPES_HPP
#define POPLAR_FIELD_TYPES_HPP

namespace poplar {

enum class VectorLayout : unsigned {
  NOT_A_VECTOR,
  SPAN,
  SHORT_SPAN,
  ONE_PTR,
  SCALED_PTR32,
  SCALED_PTR64,
  SCALED_PTR128,
  COMPACT_PTR,
};

enum class VectorListLayout : unsigned {
  NOT_A_VECTOR,
  ONE_PTR,
  SCALED_PTR32,
  SCALED_PTR64,
  SCALED_PTR128,
  DELTAN,
  DELTANELEMENTS,
  COMPACT_DELTAN,
};

}  // namespace poplar

#endif
