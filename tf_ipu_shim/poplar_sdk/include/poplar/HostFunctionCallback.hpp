// Includes the callbacks of host functions, under the name of Graphcore's header.
#ifndef poplar_HostFunctionCallback_hpp
#define poplar_HostFunctionCallback_hpp

#include <poplar/StreamCallback.hpp>

#endif
