// Lists the fields of graphs and programs that are written to files and read from them.
#ifndef poplar_csrc_graph_fields_hpp
#define poplar_csrc_graph_fields_hpp

#include "poplar/graph/node.hpp"
#include "poplar/graph/state.hpp"

#include <poplar/detail/archive.hpp>
#include <poplar/detail/vertex_table.hpp>
#include <poplar/exceptions.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace poplar {

namespace detail {

struct GraphWriter : Writer {
  std::shared_ptr<GraphState> graph;
  std::map<const Node*, std::uint64_t> programs;  // those written so far; programs may have parts in common
};

struct GraphReader : Reader {
  using Reader::Reader;
  std::shared_ptr<GraphState> graph = std::make_shared<GraphState>();
  std::vector<Program> programs;
};

}  // namespace detail

template <class Archive>
void transferFields(Archive& archive, OptionFlags& options) {
  std::map<std::string, std::string> values(options.begin(), options.end());
  detail::transfer(archive, values);
  for (const auto& [name, value] : values) options.set(name, value);
}

template <class Archive>
void transferFields(Archive& archive, Target& target) {
  detail::TargetFigures figures = target.figures();
  detail::transfer(archive, figures);
  target = Target(std::move(figures));
}

template <class Archive>
void transferFields(Archive& archive, DataStream& stream) {
  auto [id, handle, type] = std::tuple(stream.id(), stream.handle(), stream.elementType());
  auto [count, direction, mode] = std::tuple(stream.numElements(), stream.type(), stream.replicatedMode());
  detail::transfer(archive, id, handle, type, count, direction, mode);
  stream = DataStream(id, handle, type, count, direction, mode);
}

template <class Archive>
void transferFields(Archive& archive, RemoteBuffer& buffer) {
  auto [handle, type] = std::tuple(buffer.handle(), buffer.elementType());
  auto [count, repeats] = std::tuple(buffer.numElements(), buffer.getRepeats());
  detail::transfer(archive, handle, type, count, repeats);
  buffer = RemoteBuffer(handle, type, count, repeats);
}

template <class Archive>
void transferFields(Archive& archive, Tensor& tensor) {
  bool valid = tensor.valid();
  detail::transfer(archive, valid);
  if (!valid) return;
  auto type = Archive::reads ? Type() : tensor.elementType();
  auto view = Archive::reads ? detail::View() : detail::viewOf(tensor);
  detail::transfer(archive, type, view);
  if constexpr (Archive::reads) tensor = detail::makeTensor(type, std::move(view), archive.graph);
}

namespace program {

template <class Archive>
void transferFields(Archive& archive, Program& program) {
  constexpr auto is_new = ~std::uint64_t{0};
  std::uint64_t number = is_new;
  if constexpr (Archive::reads) {
    detail::transfer(archive, number);
    if (number == is_new) {
      auto node = std::make_shared<detail::Node>();
      detail::transfer(archive, node->name, node->step);
      archive.programs.emplace_back(std::move(node));
    }
    program = number == is_new ? archive.programs.back() : archive.programs.at(number);
  } else {
    auto& node = const_cast<detail::Node&>(program.node());
    const auto known = archive.programs.find(&node);
    if (known != archive.programs.end()) number = known->second;
    detail::transfer(archive, number);
    if (number != is_new) return;
    detail::transfer(archive, node.name, node.step);
    archive.programs.emplace(&node, archive.programs.size());
  }
}

}  // namespace program

namespace detail {

template <class... Kinds>
struct Transfer<std::variant<Kinds...>> {
  template <class Archive>
  static void run(Archive& archive, std::variant<Kinds...>& value) {
    std::size_t index = value.index(), kind = 0;
    transfer(archive, index);
    if constexpr (Archive::reads) ((index == kind++ ? static_cast<void>(value.template emplace<Kinds>()) : void()), ...);
    if (index != value.index()) throw poplar_error("deserialize: the file has a step of an unknown kind.");
    std::visit([&](auto& alternative) { transfer(archive, alternative); }, value);
  }
};

POPLAR_FIELDS(SequenceStep, part.programs)
POPLAR_FIELDS(ExecuteStep, part.compute_set, part.predicate)
POPLAR_FIELDS(CopyStep, part.source, part.destination)
POPLAR_FIELDS(StreamStep, part.handle, part.tensor, part.to_device)
POPLAR_FIELDS(RemoteStep, part.handle, part.tensor, part.offset, part.to_device)
POPLAR_FIELDS(CrossReplicaStep, part.source, part.destination, part.replicas)
POPLAR_FIELDS(RepeatStep, part.count, part.body)
POPLAR_FIELDS(WhileStep, part.condition, part.predicate, part.go_on, part.body)
POPLAR_FIELDS(IfStep, part.predicate, part.when_true, part.when_false)
POPLAR_FIELDS(SwitchStep, part.control, part.cases, part.by_default)
POPLAR_FIELDS(PrintStep, part.title, part.tensor, part.format)
POPLAR_FIELDS(ErrorStep, part.message, part.predicate, part.shown)
POPLAR_FIELDS(HostCallStep, part.function, part.inputs, part.outputs)
POPLAR_FIELDS(StampStep, part.cycles)
POPLAR_FIELDS(KernelCost, part.cycles, part.vertex, part.elementwise)
POPLAR_FIELDS(KernelStep, part.inputs, part.outputs, part.kernel, part.cost)
POPLAR_FIELDS(NamedStep, part.body)
POPLAR_FIELDS(NoStep, part.tensor)
POPLAR_FIELDS(TargetFigures, part.type, part.arch, part.system, part.ipus, part.tiles_per_ipu, part.bytes_per_tile,
              part.workers, part.clock_frequency, part.exchange_bytes_per_cycle, part.units_half,
              part.units_half_float, part.units_float, part.options)
POPLAR_FIELDS(Variable, part.name, part.type, part.shape, part.count, part.constant, part.replica_index,
              part.of_vertex, part.data, part.tiles)
POPLAR_FIELDS(InitialValue, part.view, part.data)
POPLAR_FIELDS(Edge, part.view, part.type)
POPLAR_FIELDS(FieldState, part.connected, part.whole, part.rows, part.value, part.value_count, part.has_value)
POPLAR_FIELDS(ComputeSetState, part.name, part.vertices, part.programs)
POPLAR_FIELDS(HostFunctionState, part.handle, part.inputs, part.outputs)

template <class Archive>
void transferFields(Archive& archive, Kernel& kernel) {
  if constexpr (Archive::reads) kernel = Kernel::read(archive);
  else kernel.write(archive);
}

template <class Archive>
void transferFields(Archive& archive, View& view) {
  bool has_runs = view.runs_ != nullptr;
  transfer(archive, view.shape_, view.strides_, view.offset_, has_runs);
  if (!has_runs) return;
  std::vector<Run> runs;
  if constexpr (!Archive::reads) runs = *view.runs_;
  transfer(archive, runs);
  if constexpr (Archive::reads) view.runs_ = std::make_shared<const std::vector<Run>>(std::move(runs));
}

template <class Archive>
void transferFields(Archive& archive, TileMap& tiles) {
  std::vector<std::tuple<std::size_t, std::size_t, unsigned>> pieces;
  for (const auto& [begin, piece] : tiles.pieces()) pieces.emplace_back(begin, piece.end, piece.tile);
  transfer(archive, pieces);
  if constexpr (Archive::reads)
    for (const auto& [begin, end, tile] : pieces) tiles.assign(begin, end, tile);
}

// A vertex type is the number of its codelet file, and its number there.
template <class Archive>
void transferFields(Archive& archive, VertexState& vertex) {
  const auto& files = *archive.graph->program_codelets;
  std::size_t file = 0, number = 0;
  if constexpr (!Archive::reads) {
    const auto has = [&](const VertexTable& table) {
      return vertex.type >= table.vertices && vertex.type < table.vertices + table.count;
    };
    while (!has(*files.at(file).table)) ++file;
    number = static_cast<std::size_t>(vertex.type - files[file].table->vertices);
  }
  transfer(archive, file, number, vertex.compute_set, vertex.tile, vertex.estimate, vertex.fields);
  vertex.type = files.at(file).table->vertices + number;
}

// Codelet files are transferred with their code.
template <class Archive>
void transferFields(Archive& archive, GraphState& graph) {
  std::size_t files = archive.size(graph.program_codelets->size());
  for (std::size_t i = 0; i < files; ++i) {
    CodeletLibrary library = Archive::reads ? CodeletLibrary() : (*graph.program_codelets)[i];
    transfer(archive, library.path, library.image);
    if constexpr (Archive::reads) addCodeletImage(graph, library.path, library.image);
  }
  transfer(archive, graph.target, graph.replicas, graph.variables, graph.initial_values, graph.vertices,
           graph.compute_sets, graph.functions, graph.host_functions, graph.counts_cycles, graph.streams,
           graph.remote_buffers, graph.host_writes, graph.host_reads, graph.sources);
}

}  // namespace detail

}  // namespace poplar

#endif
