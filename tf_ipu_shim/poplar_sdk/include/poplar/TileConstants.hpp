// Included by codelets for the numbers, addresses and registers of a tile.
#ifndef POPLAR_TILE_CONSTANTS_HPP
#define POPLAR_TILE_CONSTANTS_HPP

#include <arch/gc_tile_defines.h>

#endif
