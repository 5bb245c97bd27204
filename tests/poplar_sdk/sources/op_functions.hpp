// The functions of an op's library, with the signatures of API level 5.
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#define METADATA(name)                                                                                      \
  extern "C" void name##_metadata(std::vector<std::int64_t>& allocating_indices,                            \
                                  std::vector<std::int64_t>& replica_identical_output_indices,              \
                                  std::map<std::int64_t, std::int64_t>& input_to_output_tensor_aliasing,    \
                                  bool& is_elementwise, bool& is_stateless, bool& is_hashable, std::uint32_t num_inputs)
#define ALLOCATOR(name)                                                                                            \
  extern "C" poplar::Tensor name##_allocator(poplar::Graph& graph, std::uint32_t operand,                          \
                                             const std::vector<std::size_t>& shape, poplar::Type type,             \
                                             const std::string& attributes, const std::string& debugPrefix)
#define BUILD(name)                                                                                              \
  extern "C" poplar::program::Program name(poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs,      \
                                           std::vector<poplar::Tensor>& outputs, const std::string& attributes,  \
                                           const std::string& debugPrefix)
#define GRADIENT(name)                                                                                              \
  extern "C" poplar::program::Program name##_grad(                                                                  \
      poplar::Graph& graph, int input_grad_index, const std::vector<poplar::Tensor>& gradients,                     \
      const std::vector<poplar::Tensor>& inputs, const std::vector<poplar::Tensor>& results,                        \
      std::vector<poplar::Tensor>& outputs, const std::string& attributes, const std::string& debugPrefix)

extern "C" {
std::int32_t custom_op_api_level = 5;
}
