// Includes the layouts of vertex fields that are vectors, under the name of Graphcore's header.
#ifndef POPLAR_VECTOR_LAYOUT_HPP
#define POPLAR_VECTOR_LAYOUT_HPP

#include <poplar/FieldTypes.hpp>

#endif
