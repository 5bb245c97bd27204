// Includes OptionFlags, which hold the options of a run, under the name of Graphcore's header.
#ifndef poplar_RuntimeOptions_hpp
#define poplar_RuntimeOptions_hpp

#include <poplar/OptionFlags.hpp>

#endif
