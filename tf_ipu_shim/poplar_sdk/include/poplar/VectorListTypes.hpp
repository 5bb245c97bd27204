// `VectorList`: vectors of different sizes in one field.
#ifndef POPLAR_VECTOR_LIST_TYPES_HPP
#define POPLAR_VECTOR_LIST_TYPES_HPP

#include <poplar/FieldTypes.hpp>

namespace poplar {

// Only inside Input, Output or InOut.
template <typename T, VectorListLayout L = VectorListLayout::DELTANELEMENTS, unsigned MinAlign = alignof(T),
          bool Interleaved = false>
class VectorList;

}  // namespace poplar

#endif
