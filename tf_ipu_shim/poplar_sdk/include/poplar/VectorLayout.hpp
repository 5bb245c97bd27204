// Layouts of vectors.
#ifndef POPLAR_VECTOR_LAYOUT_HPP
#define POPLAR_VECTOR_LAYOUT_HPP

#include <poplar/FieldTypes.hpp>

#endif
