// Computes a program's bytes on each tile, cycles of compute sets, and exchanged bytes.
#include "poplar/graph/node.hpp"
#include "poplar/engine/runner.hpp"

#include <poplar/CycleCount.hpp>
#include <poplar/detail/account.hpp>

#include <algorithm>
#include <cstring>

namespace poplar::detail {

namespace {

// Cycles of a worker without an estimate: the call, and a load and an operation for each element.
std::uint64_t defaultCycles(std::size_t elements) { return 25 + 2 * elements; }

using Parts = std::vector<std::pair<std::size_t, unsigned>>;  // elements in order with their tile

Parts partsOf(const GraphState& graph, const Tensor& tensor) {
  Parts parts;
  visitTiles(graph, viewOf(tensor), [&](std::size_t, std::size_t count, const unsigned* tile) {
    parts.emplace_back(count, tile ? *tile : ~0u);
  });
  return parts;
}

// Elements that lie on different tiles in two lists: all, and the most that one tile sends or receives.
struct Crossing {
  std::size_t elements = 0, most = 0;
};

Crossing crossingOf(const Parts& from, const Parts& to) {
  Crossing crossing;
  std::map<unsigned, std::size_t> sent, received;
  std::size_t i = 0, j = 0, done_i = 0, done_j = 0;
  while (i < from.size() && j < to.size()) {
    const std::size_t count = std::min(from[i].first - done_i, to[j].first - done_j);
    if (from[i].second != to[j].second) {
      crossing.elements += count;
      crossing.most = std::max({crossing.most, sent[from[i].second] += count, received[to[j].second] += count});
    }
    if ((done_i += count) == from[i].first) ++i, done_i = 0;
    if ((done_j += count) == to[j].first) ++j, done_j = 0;
  }
  return crossing;
}

// The cycles of one tile's vertices, of which a worker runs one after another.
class TileCycles {
 public:
  explicit TileCycles(unsigned workers) : sums_(std::max(1u, workers), 0) {}
  void addWorker(std::uint64_t cycles) { *std::min_element(sums_.begin(), sums_.end()) += cycles; }
  void addSupervisor(std::uint64_t cycles) { supervisor_ += cycles; }
  std::uint64_t total() const { return supervisor_ + sums_.size() * *std::max_element(sums_.begin(), sums_.end()); }

 private:
  std::vector<std::uint64_t> sums_;
  std::uint64_t supervisor_ = 0;
};

// Calls a vertex's getCycleEstimate on a state whose fields have the right sizes and zeros.
std::uint64_t estimateOf(const VertexState& vertex) {
  const Vertex& type = *vertex.type;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < type.field_count; ++i) {
    longest = std::max(longest, vertex.fields[i].value.size());
    for (const auto& row : vertex.fields[i].rows)
      if (row) longest = std::max(longest, row->view.count() * type.fields[i].type_size);
  }
  const Pages zeros(longest + 64), state(type.size + type.alignment);
  type.construct(state.data());
  for (std::size_t i = 0; i < type.field_count; ++i) {
    const Field& field = type.fields[i];
    const FieldState& known = vertex.fields[i];
    if (!field.bind) {
      if (known.has_value) std::memcpy(state.data() + field.offset, known.value.data(), known.value.size());
      continue;
    }
    std::vector<std::size_t> sizes;
    if (field.kind == FieldKind::Value) sizes = {known.value_count};
    else if (field.depth < 2 && !known.whole) sizes = {known.rows.size()};
    else
      for (const auto& row : known.rows) sizes.push_back(row ? row->view.count() : 0);
    const std::vector<void*> rows(sizes.size(), zeros.data());
    field.bind(state.data() + field.offset, rows.data(), sizes.data(), rows.size());
  }
  const std::uint64_t cycles = type.cycles(state.data());
  type.destroy(state.data());
  return cycles;
}

std::uint64_t stateBytes(const VertexState& vertex) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < vertex.fields.size(); ++i)
    bytes += vertex.type->fields[i].state_bytes + (vertex.type->fields[i].bind ? vertex.fields[i].value.size() : 0);
  return (bytes + 3) / 4 * 4;
}

class Walker {
 public:
  Walker(const GraphState& graph, Account& account) : graph_(graph), account_(account) {}

  void walk(const Program& program, std::uint64_t times) {
    const Node& node = program.node();
    std::visit([&](const auto& step) { visit(node, step, times); }, node.step);
  }

 private:
  void visit(const Node&, const SequenceStep& step, std::uint64_t times) {
    for (const auto& program : step.programs) walk(program, times);
  }
  void visit(const Node&, const RepeatStep& step, std::uint64_t times) { walk(step.body, times * step.count); }
  void visit(const Node&, const WhileStep& step, std::uint64_t times) {
    walk(step.condition, times);
    walk(step.body, times);
  }
  void visit(const Node&, const IfStep& step, std::uint64_t times) {
    walk(step.when_true, times);
    walk(step.when_false, times);
  }
  void visit(const Node&, const SwitchStep& step, std::uint64_t times) {
    for (const auto& [value, program] : step.cases) walk(program, times);
    walk(step.by_default, times);
  }
  void visit(const Node&, const CallStep& step, std::uint64_t times) { walk(graph_.functions[step.function], times); }
  void visit(const Node&, const NamedStep& step, std::uint64_t times) { walk(step.body, times); }
  void visit(const Node& node, const HostCallStep& step, std::uint64_t times) {
    const auto& handle = graph_.host_functions.at(step.function).handle;
    AccountStep& added = add(AccountStep::Kind::StreamCopy, node.name.empty() ? handle : node.name, times);
    for (const auto* tensors : {&step.inputs, &step.outputs})
      for (const Tensor& tensor : *tensors) added.exchange_bytes += bytesOf(tensor);
  }
  void visit(const Node&, const StampStep&, std::uint64_t) {}
  void visit(const Node&, const PrintStep&, std::uint64_t) {}
  void visit(const Node&, const ErrorStep&, std::uint64_t) {}
  void visit(const Node&, const NoStep&, std::uint64_t) {}

  AccountStep& add(AccountStep::Kind kind, const std::string& name, std::uint64_t times) {
    account_.steps.push_back({kind, name, times, {}, {}, 0, 0});
    return account_.steps.back();
  }
  static std::uint64_t bytesOf(const Tensor& tensor) { return tensor.numElements() * typeSize(tensor.elementType()); }

  void visit(const Node& node, const CopyStep& step, std::uint64_t times) {
    AccountStep& added = add(AccountStep::Kind::Copy, node.name, times);
    const Crossing crossing = crossingOf(partsOf(graph_, step.source), partsOf(graph_, step.destination));
    const std::size_t size = typeSize(step.source.elementType());
    added.exchange_bytes = size * crossing.elements;
    added.cycles = size * crossing.most / graph_.target.getExchangeBytesPerCycle();
  }
  void visit(const Node& node, const StreamStep& step, std::uint64_t times) {
    add(AccountStep::Kind::StreamCopy, node.name.empty() ? step.handle : node.name, times).exchange_bytes =
        bytesOf(step.tensor);
  }
  void visit(const Node& node, const RemoteStep& step, std::uint64_t times) {
    add(AccountStep::Kind::RemoteCopy, node.name.empty() ? step.handle : node.name, times).exchange_bytes =
        bytesOf(step.tensor);
  }
  void visit(const Node& node, const CrossReplicaStep& step, std::uint64_t times) {
    add(AccountStep::Kind::CrossReplicaCopy, node.name, times).exchange_bytes = bytesOf(step.source);
  }
  void visit(const Node&, const ExecuteStep& step, std::uint64_t times) {
    auto known = compute_sets_.find(step.compute_set);
    if (known == compute_sets_.end())
      known = compute_sets_.emplace(step.compute_set, computeSet(graph_.compute_sets[step.compute_set])).first;
    account_.steps.push_back(known->second);
    account_.steps.back().times = times;
    for (const auto& program : graph_.compute_sets[step.compute_set].programs) walk(program, times);
  }

  AccountStep computeSet(const ComputeSetState& set) {
    AccountStep step{AccountStep::Kind::ComputeSet, set.name, 1, {}, {}, 0, 0};
    std::map<unsigned, TileCycles> tiles;
    for (unsigned id : set.vertices) {
      const VertexState& vertex = graph_.vertices[id];
      if (!vertex.tile)
        throw invalid_tile_mapping("A vertex of compute set '" + set.name +
                                   "' is not mapped to a tile. Call setTileMapping for the vertex.");
      ++step.vertices[vertex.type->name];
      const std::size_t elements = countEdges(vertex, step);
      TileCycles& tile = tiles.try_emplace(*vertex.tile, graph_.target.getNumWorkerContexts()).first->second;
      std::uint64_t cycles = 0;
      if (const auto estimate = registeredEstimate(graph_, vertex)) cycles = estimate->cycles;
      else cycles = vertex.type->cycles ? estimateOf(vertex) : defaultCycles(elements);
      vertex.type->workers > 1 ? tile.addSupervisor(cycles) : tile.addWorker(cycles);
    }
    for (const auto& [tile, cycles] : tiles) {
      step.tile_cycles[tile] = cycles.total();
      step.cycles = std::max(step.cycles, cycles.total());
    }
    return step;
  }

  // Counts the connected elements; those on other tiles are exchanged.
  std::size_t countEdges(const VertexState& vertex, AccountStep& step) {
    std::size_t elements = 0;
    for (std::size_t i = 0; i < vertex.fields.size(); ++i) {
      const Field& field = vertex.type->fields[i];
      for (const auto& row : vertex.fields[i].rows) {
        if (!row) continue;
        elements += row->view.count();
        visitTiles(graph_, row->view, [&](std::size_t, std::size_t count, const unsigned* tile) {
          if (tile && *tile != *vertex.tile)
            step.exchange_bytes += count * field.type_size * (field.kind == FieldKind::InOut ? 2 : 1);
        });
      }
    }
    return elements;
  }

  void visit(const Node& node, const KernelStep& step, std::uint64_t times) {
    AccountStep& added = add(AccountStep::Kind::ComputeSet, node.name, times);
    std::map<unsigned, std::size_t> elements;
    for (const Tensor& output : step.outputs)
      for (const auto& [count, tile] : partsOf(graph_, output)) elements[tile] += count;
    added.vertices[step.cost.vertex.empty() ? node.name : step.cost.vertex] = elements.size();
    for (const auto& [tile, cycles] : step.cost.cycles) added.tile_cycles[tile] = cycles;
    if (step.cost.cycles.empty()) {
      const std::size_t workers = std::max(1u, graph_.target.getNumWorkerContexts());
      for (const auto& [tile, count] : elements)
        added.tile_cycles[tile] = workers * defaultCycles((count + workers - 1) / workers);
    }
    for (const auto& [tile, cycles] : added.tile_cycles) added.cycles = std::max(added.cycles, cycles);
    for (const Tensor& input : step.inputs) added.exchange_bytes += exchangedBytes(input, step, elements);
  }

  // For an input: elements on another tile than the output's element, or than the only tile that computes.
  std::uint64_t exchangedBytes(const Tensor& input, const KernelStep& step,
                               const std::map<unsigned, std::size_t>& computing) {
    const auto parts = partsOf(graph_, input);
    std::size_t crossing = 0;
    if (!step.outputs.empty() && step.outputs[0].numElements() == input.numElements()) {
      crossing = crossingOf(parts, partsOf(graph_, step.outputs[0])).elements;
    } else {
      for (const auto& [count, tile] : parts)
        if (computing.size() != 1 || !computing.count(tile)) crossing += count;
    }
    return crossing * typeSize(input.elementType());
  }

  const GraphState& graph_;
  Account& account_;
  std::map<unsigned, AccountStep> compute_sets_;
};

void countVariables(const GraphState& graph, Account& account) {
  account.tile_bytes.assign(graph.target.getNumTiles(), 0);
  for (const auto& variable : graph.variables) {
    AccountVariable counted{variable.name, variable.type, variable.count, variable.constant, {}};
    for (const auto& [begin, piece] : variable.tiles.pieces()) {
      const std::uint64_t bytes = (piece.end - begin) * typeSize(variable.type);
      counted.tile_bytes[piece.tile] += bytes;
      account.tile_bytes[piece.tile] += bytes;
    }
    account.variables.push_back(std::move(counted));
  }
  for (const auto& vertex : graph.vertices)
    if (vertex.tile) account.tile_bytes[*vertex.tile] += stateBytes(vertex);
}

}  // namespace

const char* textOf(AccountStep::Kind kind) {
  switch (kind) {
    case AccountStep::Kind::ComputeSet: return "OnTileExecute";
    case AccountStep::Kind::Copy: return "DoExchange";
    case AccountStep::Kind::StreamCopy: return "StreamCopy";
    case AccountStep::Kind::RemoteCopy: return "RemoteCopy";
    case AccountStep::Kind::CrossReplicaCopy: return "CrossReplicaCopy";
  }
  return "?";
}

Account describe(const Graph& graph, ArrayRef<program::Program> programs) { return describe(graph.state(), programs); }

Account describe(const GraphState& graph, ArrayRef<program::Program> programs) {
  Account account;
  countVariables(graph, account);
  Walker walker(graph, account);
  for (const auto& program : programs) walker.walk(program, 1);
  return account;
}

std::uint64_t cyclesOf(const GraphState& graph, const Program& step) {
  Account account;
  Walker(graph, account).walk(step, 1);
  std::uint64_t cycles = 0;
  for (const auto& counted : account.steps) cycles += counted.cycles;
  return cycles;
}

void printSummary(std::ostream& out, const Account& account, bool steps) {
  std::uint64_t total = 0, fullest = 0, cycles = 0, exchanged = 0;
  for (const auto bytes : account.tile_bytes) {
    total += bytes;
    fullest = std::max(fullest, bytes);
  }
  for (const auto& step : account.steps) {
    cycles += step.cycles * step.times;
    exchanged += step.exchange_bytes * step.times;
  }
  out << "Target:\n  Number of tiles:      " << account.tile_bytes.size() << "\nMemory Usage:\n  Total:                "
      << total << " bytes\n  Fullest tile:         " << fullest << " bytes\nProgram:\n  Compute cycles:       " << cycles
      << " (modelled)\n  Exchanged bytes:      " << exchanged << '\n';
  if (!steps) return;
  out << "Execution steps:\n";
  for (const auto& step : account.steps) {
    out << "  " << textOf(step.kind) << ": " << step.name;
    if (step.times != 1) out << " (" << step.times << " times)";
    out << "\n    cycles: " << step.cycles << ", exchanged bytes: " << step.exchange_bytes << '\n';
    for (const auto& [name, count] : step.vertices) out << "    " << name << ": " << count << " vertices\n";
  }
}

}  // namespace poplar::detail

namespace poplar {

Tensor cycleCount(Graph& graph, program::Sequence& program, unsigned tile, SyncType, const DebugContext& context) {
  std::uint64_t cycles = 0;
  for (const auto& step : detail::describe(graph, {program}).steps) cycles += step.cycles * step.times;
  const unsigned words[] = {static_cast<unsigned>(cycles), static_cast<unsigned>(cycles >> 32)};
  const Tensor modelled = graph.addConstant<unsigned>(UNSIGNED_INT, {2}, ArrayRef<unsigned>(words), context);
  const Tensor result = graph.addVariable(UNSIGNED_INT, {2}, context);
  graph.setTileMapping(modelled, tile);
  graph.setTileMapping(result, tile);
  program.add(program::Copy(modelled, result, false, context));
  return result;
}

Tensor cycleStamp(Graph& graph, program::Sequence& program, unsigned tile, SyncType, const DebugContext& context) {
  const Tensor result = graph.addVariable(UNSIGNED_INT, {2}, context);
  graph.setTileMapping(result, tile);
  graph.state().counts_cycles = true;
  program.add(program::Program(std::make_shared<detail::Node>(detail::Node{context.getPathName(), detail::StampStep{result}})));
  return result;
}

}  // namespace poplar
