// Short vectors of elements. The compiler implements their arithmetic.
#ifndef POPLAR_VECTOR_TYPES_HPP
#define POPLAR_VECTOR_TYPES_HPP

#include <poplar/HalfFloat.hpp>

#define POPLAR_SHORT_VECTORS(type, name)                           \
  typedef type name##2 __attribute__((vector_size(2 * sizeof(type)))); \
  typedef type name##4 __attribute__((vector_size(4 * sizeof(type))));
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
