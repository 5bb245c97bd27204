// Writes the compute sets of programs as a graph in the DOT language.
#include "poplar/graph/node.hpp"
#include "poplar/graph/state.hpp"

#include <poplar/detail/vertex_table.hpp>

#include <set>
#include <utility>
#include <vector>

namespace poplar {

namespace detail {

namespace {

// Finds the compute sets that programs run.
class ComputeSets {
 public:
  explicit ComputeSets(const GraphState& graph) : graph_(graph) {}

  void find(const program::Program& program) {
    name_ = program.node().name;
    std::visit([this](const auto& step) { visit(step); }, program.node().step);
  }
  void findAll() {
    for (std::size_t number = 0; number < graph_.compute_sets.size(); ++number)
      visit(ExecuteStep{static_cast<unsigned>(number), std::nullopt});
  }
  const std::set<unsigned>& found() const { return found_; }
  const std::vector<std::pair<std::string, const KernelStep*>>& kernels() const { return kernels_; }

 private:
  void visit(const ExecuteStep& step) {
    if (!found_.insert(step.compute_set).second) return;
    for (const auto& program : graph_.compute_sets[step.compute_set].programs) find(program);
  }
  void visit(const KernelStep& step) { kernels_.emplace_back(name_, &step); }
  void visit(const SequenceStep& step) {
    for (const auto& program : step.programs) find(program);
  }
  void visit(const RepeatStep& step) { find(step.body); }
  void visit(const NamedStep& step) { find(step.body); }
  void visit(const WhileStep& step) {
    find(step.condition);
    find(step.body);
  }
  void visit(const IfStep& step) {
    find(step.when_true);
    find(step.when_false);
  }
  void visit(const SwitchStep& step) {
    for (const auto& [value, program] : step.cases) find(program);
    find(step.by_default);
  }
  void visit(const CallStep& step) { find(graph_.functions[step.function]); }
  template <class Other>
  void visit(const Other&) {}

  const GraphState& graph_;
  std::set<unsigned> found_;
  std::vector<std::pair<std::string, const KernelStep*>> kernels_;  // of library functions
  std::string name_;
};

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

class Drawing {
 public:
  Drawing(const GraphState& graph, std::ostream& out) : graph_(graph), out_(out) {}

  void draw(unsigned compute_set) {
    const ComputeSetState& set = graph_.compute_sets[compute_set];
    out_ << "  subgraph cluster_" << compute_set << " {\n    label=" << quoted(set.name) << ";\n";
    for (const unsigned id : set.vertices) {
      const VertexState& vertex = graph_.vertices[id];
      const std::string tile = vertex.tile ? " on tile " + std::to_string(*vertex.tile) : "";
      out_ << "    vertex_" << id << " [shape=box, label=" << quoted(vertex.type->name + tile) << "];\n";
    }
    out_ << "  }\n";
    for (const unsigned id : set.vertices) drawFields(id, graph_.vertices[id]);
  }

  void draw(const std::string& name, const KernelStep& step) {
    const std::string node = "kernel_" + std::to_string(kernels_++);
    out_ << "  " << node << " [shape=box, label=" << quoted(name) << "];\n";
    std::set<std::size_t> inputs, outputs;
    for (const Tensor& tensor : step.inputs) addVariables(viewOf(tensor), inputs);
    for (const Tensor& tensor : step.outputs) addVariables(viewOf(tensor), outputs);
    drawInputs(inputs, node, "");
    drawOutputs(outputs, node, "");
  }

 private:
  void drawFields(unsigned id, const VertexState& vertex) {
    for (std::size_t i = 0; i < vertex.fields.size(); ++i) {
      const Field& field = vertex.type->fields[i];
      std::set<std::size_t> variables;
      for (const auto& row : vertex.fields[i].rows)
        if (row) addVariables(row->view, variables);
      const std::string name = "vertex_" + std::to_string(id), label = " [label=" + quoted(field.name) + "]";
      if (field.kind != FieldKind::Output) drawInputs(variables, name, label);
      if (field.kind != FieldKind::Input) drawOutputs(variables, name, label);
    }
  }

  static void addVariables(const View& view, std::set<std::size_t>& variables) {
    for (const Span& span : view.spans()) variables.insert(variableOf(span.address));
  }

  void drawInputs(const std::set<std::size_t>& variables, const std::string& to, const std::string& label) {
    for (const std::size_t variable : variables) {
      const std::string name = nameOf(variable);
      out_ << "  " << name << " -> " << to << label << ";\n";
    }
  }
  void drawOutputs(const std::set<std::size_t>& variables, const std::string& from, const std::string& label) {
    for (const std::size_t variable : variables) {
      const std::string name = nameOf(variable);
      out_ << "  " << from << " -> " << name << label << ";\n";
    }
  }

  // Draws a variable before its first edge.
  std::string nameOf(std::size_t variable) {
    const std::string name = "variable_" + std::to_string(variable);
    if (drawn_.insert(variable).second)
      out_ << "  " << name << " [label=" << quoted(describe(graph_.variables[variable])) << "];\n";
    return name;
  }

  const GraphState& graph_;
  std::ostream& out_;
  std::set<std::size_t> drawn_;
  std::size_t kernels_ = 0;
};

}  // namespace

}  // namespace detail

void Graph::outputComputeGraph(std::ostream& out, ArrayRef<program::Program> programs) const {
  detail::ComputeSets sets(*state_);
  if (programs.empty()) sets.findAll();
  for (const auto& program : programs) sets.find(program);
  out << "digraph compute_graph {\n";
  detail::Drawing drawing(*state_, out);
  for (const unsigned id : sets.found()) drawing.draw(id);
  for (const auto& [name, step] : sets.kernels()) drawing.draw(name, *step);
  out << "}\n";
}

}  // namespace poplar
