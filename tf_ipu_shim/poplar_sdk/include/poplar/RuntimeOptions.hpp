// Programs include this file for options of the run, which are Engine's.
#ifndef poplar_RuntimeOptions_hpp
#define poplar_RuntimeOptions_hpp

#include <poplar/OptionFlags.hpp>

#endif
