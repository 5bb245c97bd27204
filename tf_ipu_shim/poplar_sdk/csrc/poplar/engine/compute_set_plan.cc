// Checks the connections and overlapping writes of compute sets, and plans the memory of their vertices' fields.
#include "poplar/engine/plan.hpp"

#include <algorithm>

namespace poplar::detail {

void checkMapped(const GraphState& graph, const View& view, const std::string& user) {
  for (const Span& span : view.spans()) {
    const Variable& variable = graph.variableAt(span.address);
    variable.tiles.visit(indexOf(span.low()), indexOf(span.high()) + 1,
                         [&](std::size_t begin, std::size_t end, const unsigned* tile) {
                           if (tile) return;
                           const std::size_t first = indexOf(span.low()), step = std::max<std::int64_t>(1, std::abs(span.step));
                           const std::size_t next = first + (begin - first + step - 1) / step * step;
                           if (next >= end) return;
                           throw invalid_tile_mapping("Elements [" + std::to_string(begin) + ":" + std::to_string(end) +
                                                      ") of " + describe(variable) + ", which " + user +
                                                      " uses, are not mapped to a tile. Call setTileMapping for them.");
                         });
  }
}

namespace {

// A span that a vertex writes, and the vertex.
struct Write {
  Span span;
  unsigned vertex;
  const Field* field;
};

std::string vertexText(const VertexState& vertex, const ComputeSetState& set) {
  return "vertex type " + std::string(vertex.type->name) + " in compute set '" + set.name + "'";
}

View viewOfElements(const FieldState& state) {
  std::vector<View> views;
  for (const auto& row : state.rows) views.push_back(row->view);
  return View::concat(views, 0);
}

// The vectors that a connected field is bound to.
std::vector<View> rowsOf(const Field& field, const FieldState& state, const std::string& text) {
  for (std::size_t i = 0; i < state.rows.size(); ++i)
    if (!state.rows[i])
      throw graph_connection_error("Field '" + std::string(field.name) + "' of " + text + " is not connected at index " +
                                   std::to_string(i) + ". Connect a tensor to it.");
  if (field.depth < 2 && !state.whole) return {viewOfElements(state)};
  std::vector<View> rows;
  for (const auto& row : state.rows) rows.push_back(row->view);
  return rows;
}

// Writes sorted by their begin, to find those that overlap a span.
class WriteIndex {
 public:
  explicit WriteIndex(std::vector<Write> writes) : writes_(std::move(writes)) {
    std::sort(writes_.begin(), writes_.end(), [](const auto& a, const auto& b) { return a.span.low() < b.span.low(); });
    Address high = -1;
    for (const auto& write : writes_) highest_.push_back(high = std::max(high, write.span.high()));
  }
  bool meetsOthers(const Span& span, unsigned vertex) const {
    auto after = std::upper_bound(writes_.begin(), writes_.end(), span.high(),
                                  [](Address at, const Write& write) { return at < write.span.low(); });
    for (auto i = static_cast<std::size_t>(after - writes_.begin()); i-- > 0 && highest_[i] >= span.low();)
      if (writes_[i].vertex != vertex && writes_[i].span.high() >= span.low()) return true;
    return false;
  }

 private:
  std::vector<Write> writes_;
  std::vector<Address> highest_;
};

class Planner {
 public:
  Planner(GraphState& graph, unsigned id) : graph_(graph), set_(graph.compute_sets[id]) {}

  std::unique_ptr<ComputeSetPlan> plan() {
    for (unsigned id : set_.vertices) prepare(graph_.vertices[id]);
    for (unsigned id : set_.vertices) collectWrites(id);
    checkWrites();
    const WriteIndex index(writes_);
    auto plan = std::make_unique<ComputeSetPlan>();
    plan->name = set_.name;
    for (unsigned id : set_.vertices) plan->vertices.push_back(planVertex(*plan, id, index));
    return plan;
  }

 private:
  // Checks the vertex's fields; its constants are copied to its tile.
  void prepare(VertexState& vertex) {
    const std::string text = vertexText(vertex, set_);
    if (!vertex.tile)
      throw invalid_tile_mapping("The " + text + " is not mapped to a tile. Call setTileMapping for the vertex.");
    for (std::size_t i = 0; i < vertex.fields.size(); ++i) {
      const Field& field = vertex.type->fields[i];
      FieldState& state = vertex.fields[i];
      if (field.kind == FieldKind::Value) continue;
      if (!state.connected && !(field.depth == 2 && state.rows.empty()))
        throw graph_connection_error("Field '" + std::string(field.name) + "' of " + text +
                                     " is not connected. Connect a tensor to it.");
      for (const View& row : rowsOf(field, state, text)) prepareRow(vertex, field, row, text);
    }
  }

  void prepareRow(VertexState& vertex, const Field& field, const View& row, const std::string& text) {
    for (const Span& span : row.spans()) {
      Variable& variable = graph_.variableAt(span.address);
      if (variable.of_vertex) variable.tiles.assign(0, variable.count, *vertex.tile);
      if (variable.constant && field.kind != FieldKind::Input)
        throw graph_connection_error("Field '" + std::string(field.name) + "' of " + text + " writes to the constant " +
                                     describe(variable) + ". Connect a variable.");
    }
    checkMapped(graph_, row, "the " + text);
  }

  void collectWrites(unsigned id) {
    const VertexState& vertex = graph_.vertices[id];
    for (std::size_t i = 0; i < vertex.fields.size(); ++i) {
      const Field& field = vertex.type->fields[i];
      if (field.kind != FieldKind::Output && field.kind != FieldKind::InOut) continue;
      for (const View& row : rowsOf(field, vertex.fields[i], ""))
        for (const Span& span : row.spans()) writes_.push_back({span, id, &field});
    }
  }

  void checkWrites() const {
    std::vector<Span> spans;
    spans.reserve(writes_.size());
    for (const auto& write : writes_) spans.push_back(write.span);
    const auto found = findOverlap(spans);
    if (!found) return;
    const Write& write = writes_[found->first];
    const Variable& variable = graph_.variableAt(write.span.address);
    throw graph_cycle_error("Field " + std::string(graph_.vertices[write.vertex].type->name) + "." + write.field->name +
                            " writes to elements [" + std::to_string(indexOf(write.span.low())) + ":" +
                            std::to_string(indexOf(write.span.high()) + 1) + ") of variable '" + variable.name +
                            "' that are written to elsewhere in same compute set ('" + set_.name +
                            "'). Write each element by one vertex, or use two compute sets.");
  }

  VertexPlan planVertex(ComputeSetPlan& plan, unsigned id, const WriteIndex& index) {
    const VertexState& vertex = graph_.vertices[id];
    const std::size_t alignment = std::max<std::size_t>(vertex.type->alignment, 16);
    plan.state_bytes = (plan.state_bytes + alignment - 1) / alignment * alignment;
    VertexPlan result{vertex.type, *vertex.tile, plan.state_bytes, false, false, {}, {}};
    plan.state_bytes += vertex.type->size;
    for (std::size_t i = 0; i < vertex.fields.size(); ++i) {
      const Field& field = vertex.type->fields[i];
      if (field.kind == FieldKind::Value) planValue(plan, result, field, vertex.fields[i]);
      else result.fields.push_back(planField(plan, result, id, field, vertex.fields[i], index));
    }
    plan.has_early = plan.has_early || result.has_early;
    return result;
  }

  static void planValue(ComputeSetPlan& plan, VertexPlan& vertex, const Field& field, const FieldState& state) {
    if (!state.has_value && !(field.bind)) return;
    if (!field.bind) {
      vertex.members.emplace_back(field.offset, state.value);
      return;
    }
    FieldPlan values{&field, {}, false, false, state.value, state.value_count, plan.scratch_bytes};
    plan.scratch_bytes += (state.value.size() + 63) / 64 * 64;
    vertex.fields.push_back(std::move(values));
  }

  FieldPlan planField(ComputeSetPlan& plan, VertexPlan& vertex, unsigned id, const Field& field, const FieldState& state,
                      const WriteIndex& index) {
    FieldPlan result{&field, {}, field.kind != FieldKind::Input, false, {}, 0, 0};
    const auto rows = rowsOf(field, state, "");
    for (const View& row : rows) {
      const auto spans = row.spans();
      result.early |= !result.written && std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
        return index.meetsOthers(span, id);
      });
    }
    for (const View& row : rows) {
      result.rows.push_back(accessTo(row, field.type_size, field.alignment, !result.early, plan.scratch_bytes));
      vertex.has_buffers |= !result.rows.back().direct;
      plan.data_bytes += result.rows.back().bytes();
    }
    vertex.has_early |= result.early;
    return result;
  }

  GraphState& graph_;
  const ComputeSetState& set_;
  std::vector<Write> writes_;
};

}  // namespace

std::unique_ptr<ComputeSetPlan> planComputeSet(GraphState& graph, unsigned id) { return Planner(graph, id).plan(); }

}  // namespace poplar::detail
