// The type of counters that compilers for IPUs turn into hardware loops.
#ifndef poplar_Loops_hpp
#define poplar_Loops_hpp

namespace poplar {

using rptsize_t = unsigned;

}  // namespace poplar

#endif
