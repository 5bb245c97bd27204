// Codelets say how much stack they need on an IPU; on the CPU it is the thread's.
#ifndef POPLAR_STACK_SIZE_DEFS_HPP
#define POPLAR_STACK_SIZE_DEFS_HPP

#define DEF_STACK_USAGE(size, name)
#define DEF_STACK_SIZE_OWN(size, name)
#define DEF_FUNC_CALL_PTRS(name, functions)

#endif
