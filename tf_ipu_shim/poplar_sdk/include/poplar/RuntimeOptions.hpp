// Included by programs for the options of a run: engines take these as OptionFlags.
#ifndef poplar_RuntimeOptions_hpp
#define poplar_RuntimeOptions_hpp

#include <poplar/OptionFlags.hpp>

#endif
