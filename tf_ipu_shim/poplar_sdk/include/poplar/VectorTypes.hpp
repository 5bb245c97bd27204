// Short vectors of elements: arithmetic, subscripts and the members x, y, z, w, as compilers for IPUs have them.
#ifndef POPLAR_VECTOR_TYPES_HPP
#define POPLAR_VECTOR_TYPES_HPP

#include <poplar/detail/short_vector.hpp>

#define POPLAR_SHORT_VECTORS(type, name)                   \
  typedef poplar::detail::ShortVector<type, 2> name##2; \
  typedef poplar::detail::ShortVector<type, 4> name##4;
POPLAR_SHORT_VECTORS(float, float)
POPLAR_SHORT_VECTORS(_Float16, half)
POPLAR_SHORT_VECTORS(int, int)
POPLAR_SHORT_VECTORS(unsigned int, uint)
POPLAR_SHORT_VECTORS(short, short)
POPLAR_SHORT_VECTORS(unsigned short, ushort)
POPLAR_SHORT_VECTORS(signed char, char)
POPLAR_SHORT_VECTORS(unsigned char, uchar)
#undef POPLAR_SHORT_VECTORS

#endif
