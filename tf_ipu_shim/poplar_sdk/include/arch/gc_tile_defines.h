// The constants of a tile that have a meaning on the CPU. Code for the CPU that uses another name does not compile.
#ifndef POPLAR_GC_TILE_DEFINES_H
#define POPLAR_GC_TILE_DEFINES_H

#define CTXT_WORKERS 6

// For __builtin_ipu_get: the register with the number of the worker.
#define CSR_W_WSR__INDEX 112
#define CSR_W_WSR__CTXTID_M1__MASK 7

#endif
