// The program that prints a tensor.
#ifndef poplar_PrintTensor_hpp
#define poplar_PrintTensor_hpp

#include <poplar/Program.hpp>

#endif
