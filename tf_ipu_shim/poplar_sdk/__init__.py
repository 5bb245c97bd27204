"""The Poplar graph API on the CPU: C++ headers and libraries, their build, and the `popc` command.

`include/` has Graphcore's header names, `csrc/` one folder for each library, `toolchain/` the code that builds them.
"""
