// Stores the variables, vertices, compute sets and functions of a graph, which its virtual graphs share.
#ifndef poplar_csrc_state_hpp
#define poplar_csrc_state_hpp

#include "poplar/views/view.hpp"

#include <poplar/Graph.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace poplar::detail {

struct Vertex;
struct VertexTable;

struct TensorImpl {
  Type type;
  View view;
  std::weak_ptr<GraphState> graph;
};

// The tile of each element of a variable, in intervals.
class TileMap {
 public:
  struct Piece {
    std::size_t end;
    unsigned tile;
  };
  void assign(std::size_t begin, std::size_t end, unsigned tile);
  // Calls visit(begin, end, tile) for the pieces within an interval, in order; tile is null if there is none.
  template <class Visitor>
  void visit(std::size_t begin, std::size_t end, Visitor&& visit) const {
    auto piece = pieces_.upper_bound(begin);
    if (piece != pieces_.begin() && std::prev(piece)->second.end > begin) --piece;
    while (begin < end) {
      if (piece == pieces_.end() || piece->first > begin) {
        const std::size_t until = piece == pieces_.end() ? end : std::min(end, piece->first);
        visit(begin, until, static_cast<const unsigned*>(nullptr));
        begin = until;
      } else {
        const std::size_t until = std::min(end, piece->second.end);
        visit(begin, until, &piece->second.tile);
        begin = until;
        ++piece;
      }
    }
  }
  // Calls visit(count, tile) for elements of a span that follow each other on one tile, in order.
  template <class Visitor>
  void visitStrided(const Span& span, Visitor&& visit) const {
    auto piece = pieces_.end();
    for (std::int64_t done = 0; done < span.length;) {
      const std::size_t at = indexOf(span.address + done * span.step);
      piece = pieceAt(at, piece);
      const bool mapped = piece != pieces_.end() && piece->first <= at;
      const std::int64_t count = std::min(span.length - done, mapped ? within(*piece, at, span.step) : 1);
      visit(static_cast<std::size_t>(count), mapped ? &piece->second.tile : nullptr);
      done += count;
    }
  }
  const std::map<std::size_t, Piece>& pieces() const { return pieces_; }

 private:
  using Place = std::map<std::size_t, Piece>::const_iterator;
  // The first piece that ends behind an element; `near` is looked at first.
  Place pieceAt(std::size_t at, Place near) const {
    for (int looked = 0; looked < 3 && near != pieces_.end() && near->first <= at; ++looked, ++near)
      if (at < near->second.end) return near;
    near = pieces_.upper_bound(at);
    return near != pieces_.begin() && std::prev(near)->second.end > at ? std::prev(near) : near;
  }
  // How many elements from one on, at this distance, lie in a piece.
  static std::int64_t within(const std::pair<const std::size_t, Piece>& piece, std::size_t at, std::int64_t step) {
    if (step > 0) return static_cast<std::int64_t>(piece.second.end - 1 - at) / step + 1;
    if (step < 0) return static_cast<std::int64_t>(at - piece.first) / -step + 1;
    return std::numeric_limits<std::int64_t>::max();
  }
  std::map<std::size_t, Piece> pieces_;
};

// Elements of a variable before a program runs.
struct InitialValue {
  View view;
  std::vector<char> data;  // row-major
};

struct Variable {
  std::string name;
  Type type;
  View::Shape shape;
  std::size_t count = 0;
  bool constant = false;
  bool replica_index = false;
  bool of_vertex = false;  // a constant made by connecting a value: it lies on the vertex's tile
  std::vector<char> data;  // of a constant
  TileMap tiles;
};

// Connections and values of one vertex.
struct Edge {
  View view;
  Type type;
};
struct FieldState {
  bool connected = false;
  bool whole = false;                     // connected at once, not element by element
  std::vector<std::optional<Edge>> rows;  // one for each vector, or for each element that was connected on its own
  std::vector<char> value;        // of a plain field, in the field's type
  std::size_t value_count = 0;
  bool has_value = false;
};
struct VertexState {
  const Vertex* type = nullptr;
  unsigned compute_set = 0;
  std::optional<unsigned> tile;
  std::optional<VertexPerfEstimate> estimate;
  std::vector<FieldState> fields;
};

struct ComputeSetState {
  std::string name;
  std::vector<unsigned> vertices;
  std::vector<program::Program> programs;  // of library functions, after the vertices
};

// A codelet library that a graph has loaded; libraries stay loaded until the process ends.
struct CodeletLibrary {
  std::string path;
  const VertexTable* table = nullptr;
  std::string image;  // the content of the file, for executables that are stored
};

// The codelet files that the graphs of one program have added, in order. Poplar has one graph for all ops of a program.
using ProgramCodelets = std::vector<CodeletLibrary>;

// A function of the host, as programs call it.
struct HostFunctionState {
  std::string handle;
  std::vector<Graph::HostFunctionArgument> inputs, outputs;
};

struct GraphState {
  Target target;
  unsigned replicas = 1;
  std::vector<Variable> variables;
  std::vector<InitialValue> initial_values;
  std::vector<VertexState> vertices;
  std::vector<ComputeSetState> compute_sets;
  std::vector<program::Program> functions;
  std::vector<HostFunctionState> host_functions;
  bool of_tensorflow_op = false;  // whose graph has one replica only, whatever the program has
  bool counts_cycles = false;  // whether a program reads the cycles that ran
  std::map<std::string, DataStream> streams;
  std::map<std::string, RemoteBuffer> remote_buffers;
  std::map<std::string, Tensor> host_writes, host_reads;
  std::map<std::string, const Vertex*> vertex_types;
  std::map<std::string, PerfEstimateFunc> estimators;  // by vertex type
  std::shared_ptr<ProgramCodelets> program_codelets = std::make_shared<ProgramCodelets>();
  std::vector<std::string> sources;  // of codelets that were added

  const Variable& variableAt(Address address) const { return variables[variableOf(address)]; }
  Variable& variableAt(Address address) { return variables[variableOf(address)]; }
};

// "12 elements of variable 'x' (float, shape {3,4})".
std::string describe(const Variable& variable);
const View& viewOf(const Tensor& tensor);
// The same; throws if the tensor is empty, or of another graph.
const View& viewIn(const GraphState& graph, const char* function, const Tensor& tensor);
Tensor makeTensor(Type type, View view, const std::shared_ptr<GraphState>& graph);

// Calls visit(position, count, tile) for each part of the view's elements that lies on one tile (null: unmapped).
template <class Visitor>
void visitTiles(const GraphState& graph, const View& view, Visitor&& visit);

// A part of a flattened tensor, and the interval of a variable that it is.
struct Region {
  std::size_t position;
  Address address;
  std::size_t length;
};
std::vector<Region> regionsOf(const View& view);

template <class Visitor>
void visitTiles(const GraphState& graph, const View& view, Visitor&& visit) {
  std::size_t position = 0;
  for (const Span& span : view.spans()) {
    graph.variableAt(span.address).tiles.visitStrided(span, [&](std::size_t count, const unsigned* tile) {
      visit(position, count, tile);
      position += count;
    });
  }
}

// Loads codelets from the content of a .gp file, as a stored executable has it.
void addCodeletImage(GraphState& graph, const std::string& path, const std::string& image);

// Writes a graph without programs.
void writeGraph(std::ostream& out, const std::shared_ptr<GraphState>& graph);

// A vertex type of the graph's own codelet files, else of those of its program; null if none has it. Throws if it is in
// several of the program only, as it is then not known which one is meant.
const Vertex* findVertexType(const GraphState& graph, const std::string& name);

// The estimate of setPerfEstimate, else of the function that is registered for the vertex's type.
std::optional<VertexPerfEstimate> registeredEstimate(const GraphState& graph, const VertexState& vertex);

}  // namespace poplar::detail

#endif
