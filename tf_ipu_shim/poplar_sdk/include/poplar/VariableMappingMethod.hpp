// How a new variable is mapped to tiles.
#ifndef poplar_VariableMappingMethod_hpp
#define poplar_VariableMappingMethod_hpp

namespace poplar {

enum class VariableMappingMethod { NONE, LINEAR };

}  // namespace poplar

#endif
