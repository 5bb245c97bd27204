// Selects the tile mapping of a new variable.
#ifndef poplar_VariableMappingMethod_hpp
#define poplar_VariableMappingMethod_hpp

namespace poplar {

enum class VariableMappingMethod { NONE, LINEAR };

}  // namespace poplar

#endif
