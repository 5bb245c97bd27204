// Ops of one program that share codelets: only some of them add the file, whose path is their attributes.
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

using poplar::Graph;
using poplar::Tensor;
using poplar::program::Execute;
using poplar::program::Program;
using Tensors = std::vector<Tensor>;
using Text = const std::string&;
using Indices = std::vector<std::int64_t>;
using Aliases = std::map<std::int64_t, std::int64_t>;

namespace {

// scale * a * b by one vertex.
Program times(Graph& graph, const Tensor& a, const Tensor& b, const Tensor& result, float scale) {
  const auto set = graph.addComputeSet("times");
  const auto vertex = graph.addVertex(set, "Times", {{"a", a}, {"b", b}, {"result", result}});
  graph.setInitialValue(vertex["scale"], scale);
  graph.setTileMapping(vertex, 0);
  return Execute(set);
}

Program square(Graph& graph, const Tensors& inputs, Tensors& outputs) {
  outputs = {graph.clone(inputs[0])};
  return times(graph, inputs[0], inputs[0], outputs[0], 1.0f);
}

void addAgain(Graph& graph, Text path) {
  if (graph.addCodelets(path)) throw std::logic_error("codelets of the program were added twice");
}

}  // namespace

extern "C" {

int custom_op_api_level = 5;

// The square of the input. It adds the codelets, its gradient does not.
Program Adds(Graph& graph, const Tensors& inputs, Tensors& outputs, Text path, Text) {
  if (!graph.addCodelets(path)) throw std::logic_error("the codelets are known before they are added");
  addAgain(graph, path);
  return square(graph, inputs, outputs);
}
Program Adds_grad(Graph& graph, int, const Tensors& gradients, const Tensors& inputs, const Tensors&, Tensors& outputs,
                  Text, Text) {
  if (!graph.hasCodelet("Times")) throw std::logic_error("the codelets are not known");
  outputs = {graph.clone(inputs[0])};
  return times(graph, gradients[0], inputs[0], outputs[0], 2.0f);
}
void Adds_metadata(Indices&, Indices&, Aliases&, bool&, bool&, bool& hashable, std::uint32_t) { hashable = true; }
void Adds_grad_metadata(Indices&, Indices&, Aliases&, bool&, bool&, bool& hashable, std::uint32_t) { hashable = true; }

// The square, by the codelets that another op adds.
Program Uses(Graph& graph, const Tensors& inputs, Tensors& outputs, Text, Text) {
  return square(graph, inputs, outputs);
}
void Uses_metadata(Indices&, Indices&, Aliases&, bool&, bool&, bool& hashable, std::uint32_t) { hashable = true; }

// The square, by codelets that another op adds, too.
Program AddsAgain(Graph& graph, const Tensors& inputs, Tensors& outputs, Text path, Text) {
  addAgain(graph, path);
  return square(graph, inputs, outputs);
}

// The square, by a file of its own in which the vertex has the same name.
Program AddsOther(Graph& graph, const Tensors& inputs, Tensors& outputs, Text path, Text) {
  graph.addCodelets(path);
  return square(graph, inputs, outputs);
}

}  // extern "C"
