// Spells reduction operations as arguments of template vertices.
#ifndef popops_OperationDefUtil_hpp
#define popops_OperationDefUtil_hpp

#include <popops/Operation.hpp>
#include <poputil/VertexTemplates.hpp>
#include <sstream>
#include <string>

namespace poputil {

template <>
struct VertexTemplateToString<popops::Operation> {
  static std::string to_string(const popops::Operation &op) {
    std::ostringstream text;
    text << "popops::Operation::" << op;
    return text.str();
  }
};

}  // namespace poputil

#endif
