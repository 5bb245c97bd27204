// The op: what TensorFlow calls to build its part of the graph, forward and backward.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

using Tensors = std::vector<poplar::Tensor>;

namespace {

struct Connection {
  std::string field;
  poplar::Tensor tensor;
};

// Adds a vertex to each tile that has elements of the first tensor; all tensors have its shape and type.
poplar::program::Program elementwise(poplar::Graph& graph, const std::string& vertex, const std::string& attributes,
                                     const std::vector<Connection>& connections, const std::string& name) {
  const poplar::Tensor& first = connections[0].tensor;
  const bool isHalf = first.elementType() == poplar::HALF;
  poplar::ComputeSet computeSet = graph.addComputeSet(name);
  const auto mapping = graph.getTileMapping(first);
  for (unsigned tile = 0; tile < mapping.size(); ++tile) {
    for (const poplar::Interval& part : mapping[tile]) {
      poplar::VertexRef added = graph.addVertex(computeSet, vertex + (isHalf ? "<half>" : "<float>"));
      for (const Connection& connection : connections)
        graph.connect(added[connection.field], connection.tensor.flatten().slice(part));
      graph.setInitialValue(added["steepness"], attributes.empty() ? 1.0f : std::stof(attributes));
      graph.setTileMapping(added, tile);
    }
  }
  return poplar::program::Execute(computeSet);
}

}  // namespace

extern "C" {
int32_t custom_op_api_level = 5;
}

extern "C" void Build_metadata(std::vector<std::int64_t>& allocating_indices,
                               std::vector<std::int64_t>& replica_identical_output_indices,
                               std::map<std::int64_t, std::int64_t>& input_to_output_tensor_aliasing,
                               bool& is_elementwise, bool& is_stateless, bool& is_hashable,
                               std::uint32_t num_inputs) {
  is_elementwise = true;
}

extern "C" poplar::program::Program Build(poplar::Graph& graph, const Tensors& inputs, Tensors& outputs,
                                          const std::string& attributes, const std::string& debugPrefix) {
  outputs.push_back(graph.clone(inputs[0], debugPrefix + "/y"));
  return elementwise(graph, "Softsign", attributes, {{"x", inputs[0]}, {"y", outputs[0]}}, debugPrefix + "/softsign");
}

extern "C" poplar::program::Program Build_grad(poplar::Graph& graph, int input_grad_index, const Tensors& gradients,
                                               const Tensors& forward_inputs, const Tensors& forward_outputs,
                                               Tensors& outputs, const std::string& attributes,
                                               const std::string& debugPrefix) {
  outputs.push_back(graph.clone(forward_inputs[0], debugPrefix + "/gradient"));
  return elementwise(graph, "SoftsignGrad", attributes,
                     {{"x", forward_inputs[0]}, {"outGradient", gradients[0]}, {"inGradient", outputs[0]}},
                     debugPrefix + "/softsign_grad");
}
