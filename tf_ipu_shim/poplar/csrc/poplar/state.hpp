// The elements of a graph, shared by all of its virtual graphs.
#ifndef poplar_csrc_state_hpp
#define poplar_csrc_state_hpp

#include "view.hpp"

#include <poplar/Graph.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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
  const std::map<std::size_t, Piece>& pieces() const { return pieces_; }

 private:
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
};

// A codelet library that a graph has loaded; libraries stay loaded until the process ends.
struct CodeletLibrary {
  std::string path;
  const VertexTable* table;
};

struct GraphState {
  Target target;
  unsigned replicas = 1;
  std::vector<Variable> variables;
  std::vector<InitialValue> initial_values;
  std::vector<VertexState> vertices;
  std::vector<ComputeSetState> compute_sets;
  std::vector<program::Program> functions;
  std::map<std::string, DataStream> streams;
  std::map<std::string, RemoteBuffer> remote_buffers;
  std::map<std::string, Tensor> host_writes, host_reads;
  std::map<std::string, const Vertex*> vertex_types;
  std::vector<CodeletLibrary> libraries;
  std::vector<std::string> sources;  // of codelets that were added

  const Variable& variableAt(Address address) const { return variables[variableOf(address)]; }
  Variable& variableAt(Address address) { return variables[variableOf(address)]; }
};

// "12 elements of variable 'x' (float, shape {3,4})".
std::string describe(const Variable& variable);
std::string shapeText(const View::Shape& shape);
const View& viewOf(const Tensor& tensor);
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
  for (const Region& region : regionsOf(view)) {
    const std::size_t index = indexOf(region.address);
    graph.variableAt(region.address)
        .tiles.visit(index, index + region.length, [&](std::size_t begin, std::size_t end, const unsigned* tile) {
          visit(region.position + begin - index, end - begin, tile);
        });
  }
}

// Adds the vertices of a library that is linked to the program, once for each name.
void registerCodelets(GraphState& graph, const std::string& name, const VertexTable* table);



}  // namespace poplar::detail

#endif
