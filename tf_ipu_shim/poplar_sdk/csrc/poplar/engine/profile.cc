// Returns and prints an engine's profiles: the graph's bytes by tile, and the cycles of programs that ran.
#include "poplar/engine/runner.hpp"
#include "poplar/target/option_tables.hpp"

#include <poplar/Engine.hpp>
#include <poplar/detail/account.hpp>

namespace poplar {

using namespace detail;

namespace {

ProfileValue valueOf(const AccountVariable& variable) {
  std::uint64_t bytes = 0;
  for (const auto& [tile, part] : variable.tile_bytes) bytes += part;
  return ProfileValue::Map{{"name", variable.name},
                           {"type", variable.type.toString()},
                           {"elements", variable.elements},
                           {"constant", ProfileValue(variable.constant)},
                           {"bytes", bytes}};
}

ProfileValue valueOf(const AccountStep& step) {
  ProfileValue::Map vertices;
  for (const auto& [name, count] : step.vertices) vertices[name] = count;
  return ProfileValue::Map{{"type", textOf(step.kind)}, {"name", step.name},
                           {"times", step.times},       {"cycles", step.cycles},
                           {"exchangedBytes", step.exchange_bytes}, {"vertices", vertices}};
}

}  // namespace

void Engine::enableExecutionProfiling() { ready("Engine::enableExecutionProfiling").counts_runs = true; }
void Engine::disableExecutionProfiling() { ready("Engine::disableExecutionProfiling").counts_runs = false; }
void Engine::resetExecutionProfile() { ready("Engine::resetExecutionProfile").run_counts.clear(); }

ProfileValue Engine::getGraphProfile() const {
  const GraphState& graph = *ready("Engine::getGraphProfile").compiled().graph;
  const Account account = describe(graph, {});
  ProfileValue::Vector tiles, variables;
  std::uint64_t total = 0;
  for (const auto bytes : account.tile_bytes) {
    tiles.emplace_back(bytes);
    total += bytes;
  }
  for (const auto& variable : account.variables) variables.push_back(valueOf(variable));
  return ProfileValue::Map{
      {"target", ProfileValue::Map{{"type", toString(graph.target.getTargetType())},
                                   {"numIPUs", graph.target.getNumIPUs()},
                                   {"tilesPerIPU", graph.target.getTilesPerIPU()},
                                   {"bytesPerTile", graph.target.getBytesPerTile()},
                                   {"clockFrequency", graph.target.getTileClockFrequency()}}},
      {"memory", ProfileValue::Map{{"byTile", tiles}, {"total", total}}},
      {"graph", ProfileValue::Map{{"numVars", graph.variables.size()},
                                  {"numComputeSets", graph.compute_sets.size()},
                                  {"numVertices", graph.vertices.size()},
                                  {"variables", variables}}}};
}

ProfileValue Engine::getExecutionProfile() const {
  const Runner& runner = ready("Engine::getExecutionProfile");
  const Compiled& compiled = runner.compiled();
  ProfileValue::Vector programs;
  std::uint64_t total = 0;
  for (const auto& [program, runs] : runner.run_counts) {
    ProfileValue::Vector steps;
    std::uint64_t cycles = 0;
    for (const auto& step : describe(*compiled.graph, {compiled.sources[program]}).steps) {
      steps.push_back(valueOf(step));
      cycles += step.cycles * step.times;
    }
    total += cycles * runs;
    programs.emplace_back(
        ProfileValue::Map{{"program", program}, {"runs", runs}, {"cycles", cycles}, {"steps", steps}});
  }
  return ProfileValue::Map{{"programs", programs}, {"cycles", total}};
}

ProfileValue Engine::getProfile() const {
  return ProfileValue::Map{{"graphProfile", getGraphProfile()}, {"executionProfile", getExecutionProfile()}};
}

void Engine::printProfileSummary(std::ostream& out, const OptionFlags& options) const {
  const Compiled& compiled = ready("Engine::printProfileSummary").compiled();
  checkOptions("Engine::printProfileSummary", options, summary_options);
  printSummary(out, describe(*compiled.graph, compiled.sources), isSet(options, "showExecutionSteps"));
}

}  // namespace poplar
