// Macros by which codelets declare their stack size on an IPU. On the CPU they use the thread's stack.
#ifndef POPLAR_STACK_SIZE_DEFS_HPP
#define POPLAR_STACK_SIZE_DEFS_HPP

#define DEF_STACK_USAGE(size, name)
#define DEF_STACK_SIZE_OWN(size, name)
#define DEF_FUNC_CALL_PTRS(name, functions)

#endif
