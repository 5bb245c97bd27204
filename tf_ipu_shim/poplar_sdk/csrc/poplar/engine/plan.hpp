// Compiled programs: steps with the addresses that they read and write.
#ifndef poplar_csrc_plan_hpp
#define poplar_csrc_plan_hpp

#include "poplar/engine/memory.hpp"
#include "poplar/graph/node.hpp"
#include "poplar/graph/state.hpp"

#include <poplar/detail/vertex_table.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poplar::detail {

class Runner;

struct Step {
  virtual ~Step() = default;
  virtual void run(Runner& runner) const = 0;
};
using StepPointer = std::shared_ptr<const Step>;

struct FieldPlan {
  const Field* field;
  std::vector<Access> rows;
  bool written = false;
  bool early = false;        // read before any vertex of the compute set writes
  std::vector<char> values;  // of a vector of plain values
  std::size_t value_count = 0, value_scratch = 0;
};

struct VertexPlan {
  const Vertex* type;
  unsigned tile;
  std::size_t offset;  // of its state
  bool has_buffers = false, has_early = false;
  std::vector<FieldPlan> fields;
  std::vector<std::pair<std::size_t, std::vector<char>>> members;  // plain values by offset
};

struct ComputeSetPlan {
  std::string name;
  std::vector<VertexPlan> vertices;
  std::size_t state_bytes = 0, scratch_bytes = 0, data_bytes = 0;
  bool has_early = false;
};

struct Compiled {
  std::shared_ptr<GraphState> graph;
  std::vector<StepPointer> programs, functions;
  std::vector<std::unique_ptr<ComputeSetPlan>> compute_sets;  // by id; null where no program runs them
  std::size_t scratch_slots = 0;                              // one buffer for each step that needs one
  std::vector<Program> sources;
};

std::shared_ptr<const Compiled> compileProgram(std::shared_ptr<GraphState> graph, ArrayRef<Program> programs);

// The modelled cycles of one step, without its repetitions.
std::uint64_t cyclesOf(const GraphState& graph, const Program& step);

// Checks the vertices of a compute set and finds their memory.
std::unique_ptr<ComputeSetPlan> planComputeSet(GraphState& graph, unsigned id);
// Throws invalid_tile_mapping if an element of the view is not mapped to a tile.
void checkMapped(const GraphState& graph, const View& view, const std::string& user);

}  // namespace poplar::detail

#endif
