// The ops of a user's library: those of Graphcore's documents written anew, and some that fail. Linked once for each
// API level with a file that has `custom_op_api_level`.
#include <gcl/Collectives.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

using poplar::Graph;
using poplar::Tensor;
using poplar::program::Execute;
using poplar::program::Program;
using poplar::program::Sequence;
using Tensors = std::vector<Tensor>;
using Text = const std::string&;
using Indices = std::vector<std::int64_t>;
using Aliases = std::map<std::int64_t, std::int64_t>;

namespace {

// A vertex for each part of `like` that is on one tile; `connect(vertex, part)` connects it.
template <class Connect>
Program everywhere(Graph& graph, const Tensor& like, const std::string& name, const char* type, Connect&& connect) {
  const auto set = graph.addComputeSet(name);
  const auto mapping = graph.getTileMapping(like);
  for (unsigned tile = 0; tile < mapping.size(); ++tile) {
    for (const auto& part : mapping[tile]) {
      const auto vertex = graph.addVertex(set, type);
      connect(vertex, part);
      graph.setTileMapping(vertex, tile);
    }
  }
  return Execute(set);
}

Program times(Graph& graph, const Tensor& a, const Tensor& b, const Tensor& result, float scale,
              const std::string& name) {
  return everywhere(graph, result, name + "/Times", "Times", [&](const auto& vertex, const auto& part) {
    graph.connect(vertex["a"], a.flatten().slice(part));
    graph.connect(vertex["b"], b.flatten().slice(part));
    graph.connect(vertex["result"], result.flatten().slice(part));
    graph.setInitialValue(vertex["scale"], scale);
  });
}

float scaleOf(Text attributes) { return attributes.empty() ? 1.0f : std::stof(attributes); }

Program simple(Graph& graph, const Tensors& inputs, Tensors& outputs, const char* type) {
  outputs.push_back(graph.clone(inputs[0]));
  return everywhere(graph, inputs[0], type, type, [&](const auto& vertex, const auto& part) {
    graph.connect(vertex["a"], inputs[0].flatten().slice(part));
    graph.connect(vertex["result"], outputs[0].flatten().slice(part));
  });
}

}  // namespace

extern "C" {

// x and y turned by angles.
Program Build(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text name) {
  if (inputs.size() != 3) throw std::invalid_argument("three inputs are needed");
  outputs = {graph.clone(inputs[0]), graph.clone(inputs[1])};
  const std::string type = "Turn<" + inputs[0].elementType().toString().str() + ">";
  return everywhere(graph, inputs[0], name + "/turn", type.c_str(), [&](const auto& vertex, const auto& part) {
    const char* names[] = {"x", "y", "angle"};
    for (unsigned i = 0; i < 3; ++i) graph.connect(vertex[names[i]], inputs[i].flatten().slice(part));
    graph.connect(vertex["x_turned"], outputs[0].flatten().slice(part));
    graph.connect(vertex["y_turned"], outputs[1].flatten().slice(part));
    graph.setPerfEstimate(vertex, 100);
  });
}

void Build_metadata(Indices& allocating, Indices&, Aliases&, bool& elementwise, bool&, bool&, std::uint32_t) {
  allocating.clear();
  elementwise = true;
}

// The first input plus the second, in place.
Program AddInPlace(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  outputs = {inputs[0]};
  return everywhere(graph, inputs[0], name + "/add", "AddTo", [&](const auto& vertex, const auto& part) {
    graph.connect(vertex["sum"], inputs[0].flatten().slice(part));
    graph.connect(vertex["part"], inputs[1].flatten().slice(part));
    graph.setInitialValue(vertex["scale"], scaleOf(attributes));
  });
}

void AddInPlace_metadata(Indices&, Indices&, Aliases& aliases, bool& elementwise, bool&, bool&, std::uint32_t) {
  aliases = {{0, 0}};
  elementwise = true;
}

// scale * a * b; its gradient has the scale of its own attributes.
Program Product(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  outputs = {graph.clone(inputs[0])};
  return times(graph, inputs[0], inputs[1], outputs[0], scaleOf(attributes), name);
}

// a * b, twice as much on an IPU Model.
Program OnModel(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text name) {
  const bool isModel = graph.getTarget().getTargetType() == poplar::TargetType::IPU_MODEL;
  outputs = {graph.clone(inputs[0])};
  return times(graph, inputs[0], inputs[1], outputs[0], isModel ? 2 : 1, name);
}

Program Product_grad(Graph& graph, int, const Tensors& gradients, const Tensors& inputs, const Tensors& results,
                     Tensors& outputs, Text attributes, Text name) {
  if (results.size() != 1 || inputs.size() != 2) throw std::invalid_argument("inputs and outputs are mixed up");
  Sequence sequence;
  for (unsigned i = 0; i < 2; ++i) {
    outputs.push_back(graph.clone(inputs[i]));
    sequence.add(times(graph, gradients[0], inputs[1 - i], outputs[i], scaleOf(attributes), name));
  }
  return sequence;
}

void Product_metadata(Indices&, Indices&, Aliases&, bool&, bool& stateless, bool& hashable, std::uint32_t inputs) {
  stateless = hashable = inputs == 2;
}
void Product_grad_metadata(Indices&, Indices&, Aliases&, bool&, bool& stateless, bool&, std::uint32_t inputs) {
  stateless = inputs == 4;
}

// The same with one gradient at a time, of which the second is 10 times too large.
Program Separate(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  return Product(graph, inputs, outputs, attributes, name);
}
Program Separate_grad(Graph& graph, int index, const Tensors& gradients, const Tensors& inputs, const Tensors&,
                      Tensors& outputs, Text, Text name) {
  outputs = {graph.clone(inputs[index])};
  return times(graph, gradients[0], inputs[1 - index], outputs[0], index == 1 ? 10.0f : 1.0f, name);
}

// A gradient for the first input only: the other's is a tensor without a value.
Program Partial(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  return Product(graph, inputs, outputs, attributes, name);
}
Program Partial_grad(Graph& graph, int, const Tensors& gradients, const Tensors& inputs, const Tensors&,
                     Tensors& outputs, Text, Text name) {
  outputs = {graph.clone(inputs[0]), Tensor()};
  return times(graph, gradients[0], inputs[1], outputs[0], 1.0f, name);
}

// Adds its input to a sum that it keeps.
Program Sum(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text name) {
  const Tensor sum = graph.clone(inputs[0]);
  graph.setInitialValue(sum, 0.0f);
  outputs = {graph.clone(inputs[0])};
  Sequence sequence;
  sequence.add(everywhere(graph, sum, name + "/sum", "AddTo", [&](const auto& vertex, const auto& part) {
    graph.connect(vertex["sum"], sum.flatten().slice(part));
    graph.connect(vertex["part"], inputs[0].flatten().slice(part));
    graph.setInitialValue(vertex["scale"], 1.0f);
  }));
  sequence.add(poplar::program::Copy(sum, outputs[0]));
  return sequence;
}

// The square times the number of IPUs; element i is on IPU i.
Program OnEachIpu(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text name) {
  outputs = {graph.clone(inputs[0])};
  const float ipus = static_cast<float>(graph.getTarget().getNumIPUs());
  return times(graph, inputs[0], inputs[0], outputs[0], ipus, name);
}
Program OnEachIpu_grad(Graph& graph, int, const Tensors& gradients, const Tensors& inputs, const Tensors&,
                       Tensors& outputs, Text, Text name) {
  outputs = {graph.clone(inputs[0])};
  const float ipus = static_cast<float>(graph.getTarget().getNumIPUs());
  return times(graph, gradients[0], inputs[0], outputs[0], 2 * ipus, name);
}
void OnEachIpu_metadata(Indices& allocating, Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t) {
  allocating = {0};
}
Tensor OnEachIpu_allocator(Graph& graph, std::uint32_t, const std::vector<std::size_t>& shape, poplar::Type type, Text,
                           Text name) {
  const Tensor tensor = graph.addVariable(type, shape, name);
  for (unsigned i = 0; i < tensor.numElements(); ++i)
    graph.setTileMapping(tensor.flatten()[i], i % graph.getTarget().getNumIPUs() * graph.getTarget().getTilesPerIPU());
  return tensor;
}

// Its first input is on tile 3, its result on tile 5.
Program Mapped(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text name) {
  outputs = {graph.addVariable(inputs[0].elementType(), inputs[0].shape(), name + "/result")};
  graph.setTileMapping(outputs[0], 5);
  return times(graph, inputs[0], inputs[1], outputs[0], 1.0f, name);
}
void Mapped_metadata(Indices& allocating, Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t) { allocating = {0}; }
Tensor Mapped_allocator(Graph& graph, std::uint32_t operand, const std::vector<std::size_t>& shape, poplar::Type type,
                        Text, Text name) {
  const Tensor tensor = graph.addVariable(type, shape, name + std::to_string(operand));
  graph.setTileMapping(tensor, 3);
  return tensor;
}

// Metadata that names tensors which the op does not have.
Program OtherInput(Graph&, const Tensors&, Tensors&, Text, Text) { return Sequence(); }
void OtherInput_metadata(Indices& allocating, Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t) {
  allocating = {0, 2};
}
Program AliasOfOtherInput(Graph&, const Tensors&, Tensors&, Text, Text) { return Sequence(); }
void AliasOfOtherInput_metadata(Indices&, Indices&, Aliases& aliases, bool&, bool&, bool&, std::uint32_t) {
  aliases = {{-1, 0}};
}
Program AliasOfOtherOutput(Graph&, const Tensors&, Tensors&, Text, Text) { return Sequence(); }
void AliasOfOtherOutput_metadata(Indices&, Indices&, Aliases& aliases, bool&, bool&, bool&, std::uint32_t) {
  aliases = {{1, 1}};
}
Program OtherIdentical(Graph&, const Tensors&, Tensors&, Text, Text) { return Sequence(); }
void OtherIdentical_metadata(Indices&, Indices& identical, Aliases&, bool&, bool&, bool&, std::uint32_t) {
  identical = {1};
}

Program Nothing(Graph&, const Tensors&, Tensors&, Text, Text) { return Sequence(); }
Program Prints(Graph&, const Tensors& inputs, Tensors&, Text, Text) {
  return poplar::program::PrintTensor("seen", inputs[0]);
}

Program Unmapped(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text) {
  outputs = {graph.addVariable(inputs[0].elementType(), inputs[0].shape(), "lost")};
  return poplar::program::Copy(inputs[0], outputs[0]);
}
Program WrongShape(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text) {
  outputs = {graph.clone(inputs[0].flatten().slice(0, 1))};
  return Sequence();
}
Program Refuses(Graph&, const Tensors&, Tensors&, Text attributes, Text) {
  throw std::invalid_argument("attributes are '" + attributes + "'");
}
Program ReducesReplicas(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text) {
  Sequence prog;
  outputs = {gcl::allReduceCrossReplica(graph, inputs[0], gcl::CollectiveOperator::ADD, prog)};
  return prog;
}
Program BuildCrashes(Graph&, const Tensors&, Tensors&, Text, Text) { std::abort(); }
void BuildsNothing(Graph&, const Tensors& inputs, Tensors& outputs, Text, Text) { outputs.push_back(inputs[0]); }
Program VertexThrows(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text) {
  return simple(graph, inputs, outputs, "Throws");
}
void VertexThrows_metadata(Indices&, Indices&, Aliases&, bool&, bool&, bool& hashable, std::uint32_t) {
  hashable = true;
}
Program Unneeded(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text) {
  return simple(graph, inputs, outputs, "Throws");
}
void Unneeded_metadata(Indices&, Indices&, Aliases&, bool&, bool& stateless, bool&, std::uint32_t) { stateless = true; }
Program VertexCrashes(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text) {
  return simple(graph, inputs, outputs, "Crashes");
}

// As libraries of earlier API levels declare them; attributes came with level 2.
Program First(Graph& graph, const Tensors& inputs, Tensors& outputs, Text name) {
  return Product(graph, inputs, outputs, "7", name);
}
Program First_grad(Graph& graph, int, const Tensors& gradients, const Tensors& inputs, const Tensors& results,
                   Tensors& outputs, Text name) {
  return Product_grad(graph, 0, gradients, inputs, results, outputs, "7", name);
}
Tensor First_allocator(Graph& graph, std::uint32_t operand, const std::vector<std::size_t>& shape, poplar::Type type,
                       Text name) {
  return Mapped_allocator(graph, operand, shape, type, "", name);
}
void First_metadata(Indices& allocating, std::uint32_t& in_place, bool&, bool& stateless, std::uint32_t inputs) {
  allocating = {0};
  in_place = 0;
  stateless = inputs == 2;
}
Program Second(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  return AddInPlace(graph, inputs, outputs, attributes, name);
}
void Second_metadata(Indices&, std::uint32_t& in_place, bool&, bool&, std::uint32_t) { in_place = 1; }
Program Third(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  return AddInPlace(graph, inputs, outputs, attributes, name);
}
void Third_metadata(Indices&, Aliases& aliases, bool&, bool& stateless, std::uint32_t inputs) {
  aliases = {{0, 0}};
  stateless = inputs == 2;
}
Program Fourth(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  return Third(graph, inputs, outputs, attributes, name);
}
void Fourth_metadata(Indices&, Aliases&, bool&, bool& stateless, bool& hashable, std::uint32_t inputs) {
  stateless = hashable = inputs == 2;
}

// Functions with parameters of another API level, or of none. At level 5 the first writes a map in place of a vector.
Program OtherLevel(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  return Product(graph, inputs, outputs, attributes, name);
}
void OtherLevel_metadata(Indices&, Aliases& aliases, bool&, bool&, std::uint32_t) { aliases = {{0, 0}}; }
Program NoLevel(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  return Product(graph, inputs, outputs, attributes, name);
}
void NoLevel_metadata(std::uint32_t address) { *reinterpret_cast<bool*>(std::uintptr_t{address}) = true; }
Program Counts(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  return Product(graph, inputs, outputs, attributes, name);
}
void Counts_metadata(Indices& allocating, bool&, bool&, std::uintptr_t inputs) {
  for (std::uintptr_t index = 0; index < inputs; ++index) allocating.push_back(0);
}
Program Waits(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  return Product(graph, inputs, outputs, attributes, name);
}
void Waits_metadata(Indices&, Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t) {
  for (;;) pause();
}
Program Misplaced(Graph& graph, const Tensors& inputs, Tensors& outputs, Text attributes, Text name) {
  return Product(graph, inputs, outputs, attributes, name);
}
void Misplaced_metadata(Indices& allocating, Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t) { allocating = {0}; }
Tensor Misplaced_allocator(Graph& graph, Text operand, const std::vector<std::size_t>& shape, poplar::Type type, Text) {
  return graph.addVariable(type, shape, operand);
}

}  // extern "C"
