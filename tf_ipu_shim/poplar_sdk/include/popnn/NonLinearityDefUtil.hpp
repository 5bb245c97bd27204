// Reads and prints the names of non-linear functions.
#ifndef popnn_NonLinearityDefUtil_hpp
#define popnn_NonLinearityDefUtil_hpp

#include <iosfwd>
#include <popnn/NonLinearityDef.hpp>
#include <poputil/VertexTemplates.hpp>
#include <string>

namespace popnn {

const char *asString(const NonLinearityType &type);
std::ostream &operator<<(std::ostream &os, const NonLinearityType &type);
std::istream &operator>>(std::istream &in, NonLinearityType &type);

}  // namespace popnn

namespace poputil {

template <>
struct VertexTemplateToString<popnn::NonLinearityType> {
  static std::string to_string(const popnn::NonLinearityType &type) {
    static const char *const names[] = {"SIGMOID", "HARD_SIGMOID", "RELU",    "TANH",           "GELU",
                                        "GELU_ERF", "SWISH",       "SOFTMAX", "SOFTMAX_STABLE", "SOFTMAX_SCALED"};
    return std::string("popnn::NonLinearityType::") + names[static_cast<int>(type)];
  }
};

}  // namespace poputil

#endif
