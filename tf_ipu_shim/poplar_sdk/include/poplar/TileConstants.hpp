// Codelets include this file for the addresses and registers of a tile. The CPU has none of them: code for the CPU that
// uses one does not compile.
#ifndef POPLAR_TILE_CONSTANTS_HPP
#define POPLAR_TILE_CONSTANTS_HPP
#endif
