// Types that IPU code uses without a namespace.
#ifndef POPLAR_IPUDEF_H
#define POPLAR_IPUDEF_H

#include <ipu_builtins.h>
#include <poplar/VectorTypes.hpp>

#endif
