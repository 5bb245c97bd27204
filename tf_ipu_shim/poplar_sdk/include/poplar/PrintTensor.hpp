// Includes the program that prints a tensor, under the name of Graphcore's header.
#ifndef poplar_PrintTensor_hpp
#define poplar_PrintTensor_hpp

#include <poplar/Program.hpp>

#endif
