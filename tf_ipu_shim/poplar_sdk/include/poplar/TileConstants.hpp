// Includes the constants of a tile, under the name of Graphcore's header.
#ifndef POPLAR_TILE_CONSTANTS_HPP
#define POPLAR_TILE_CONSTANTS_HPP

#include <arch/gc_tile_defines.h>

#endif
