// Included by programs for the reader of profiles. It has no function here: code that calls one does not compile.
#ifndef pva_pva_hpp
#define pva_pva_hpp

namespace pva {}

#endif
