// Includes the vector types and built-in functions that codelets use without a namespace.
#ifndef POPLAR_IPUDEF_H
#define POPLAR_IPUDEF_H

#include <ipu_builtins.h>
#include <poplar/VectorTypes.hpp>

#endif
