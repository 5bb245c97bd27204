// Parses the request to build a user's op: the function of the library to call, and its arguments. Python
// (`poplar_sdk/op_calls.py`) and the plugin's kernel write it as bytes: each field as decimal digits of its length, a
// colon, and its text.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_OP_CALL_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_OP_CALL_HPP_

#include <poplar/Type.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace tf_ipu_shim {

struct TensorType {
  poplar::Type type;
  std::vector<std::size_t> shape;
  std::size_t bytes = 0;
};

struct OpCall {
  std::string library_path, library_digest, gp_path, op_name, target;
  std::size_t gradient_size = 0;  // inputs that are gradients of outputs; 0: the op is no gradient
  int partial_derivative = 0;
  bool separate_gradients = false;
  std::string attributes, name;
  std::vector<TensorType> inputs, outputs;
  int order = -1;  // its place among the ops of its program; -1 if no other op uses its outputs

  struct Origin {
    bool is_computed = false;    // by another op of the program: the allocator is not asked
    int ipu = -1;                // where an op of TensorFlow's makes it; -1: not one IPU
    int order = -1, output = 0;  // the user's op and its output, whose mapping the input has; -1: none
  };
  std::vector<Origin> origins;  // of the inputs; empty if all are arguments, variables or constants

  // The target without its last word: ops of a program differ in this only.
  std::string program() const { return target.substr(0, target.rfind(' ')); }
  // Throws std::invalid_argument for bytes of another version.
  static OpCall parse(const std::string& bytes);
  // The name of the function that builds it, such as "Build_grad".
  std::string function() const { return gradient_size > 0 ? op_name + "_grad" : op_name; }
};

// "float, shape {2,3}".
std::string describe(const poplar::Type& type, const std::vector<std::size_t>& shape);

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_OP_CALL_HPP_
