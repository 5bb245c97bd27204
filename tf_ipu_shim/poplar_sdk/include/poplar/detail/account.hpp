// The cost of a program on an IPU: bytes by tile, compute sets, cycles and exchanged bytes.
#ifndef poplar_detail_account_hpp
#define poplar_detail_account_hpp

#include <poplar/ArrayRef.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace poplar::detail {

struct AccountVariable {
  std::string name;
  Type type;
  std::size_t elements;
  bool constant;
  std::map<unsigned, std::uint64_t> tile_bytes;
};

// A step of the program, in the order of execution. Cycles are those of the slowest tile.
struct AccountStep {
  enum class Kind { ComputeSet, Copy, StreamCopy, RemoteCopy, CrossReplicaCopy } kind;
  std::string name;
  std::uint64_t times = 1;                      // by the Repeats around it; a loop without a known count counts once
  std::map<std::string, std::size_t> vertices;  // how many of each type
  std::map<unsigned, std::uint64_t> tile_cycles;
  std::uint64_t cycles = 0;
  std::uint64_t exchange_bytes = 0;  // that cross tiles before the vertices run, or that the copy moves between tiles
};

struct Account {
  std::vector<AccountVariable> variables;
  std::vector<std::uint64_t> tile_bytes;  // variables, constants and the vertices' states
  std::vector<AccountStep> steps;
};

// Every tensor and vertex must be mapped: call it after compileGraph.
Account describe(const Graph& graph, ArrayRef<program::Program> programs);
Account describe(const GraphState& graph, ArrayRef<program::Program> programs);
// As profiles name a kind of step: "OnTileExecute".
const char* textOf(AccountStep::Kind kind);
void printSummary(std::ostream& out, const Account& account, bool steps);

}  // namespace poplar::detail

#endif
