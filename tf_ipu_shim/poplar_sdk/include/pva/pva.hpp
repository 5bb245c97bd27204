// An empty header under the name of Graphcore's profile reader: code that calls its functions does not compile.
#ifndef pva_pva_hpp
#define pva_pva_hpp

namespace pva {}

#endif
