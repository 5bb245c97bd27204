// `printf` for codelets.
#ifndef POPLAR_PRINT_H
#define POPLAR_PRINT_H

#include <cstdio>

using std::printf;

#endif
