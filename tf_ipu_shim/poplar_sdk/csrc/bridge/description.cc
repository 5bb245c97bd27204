// Describes a user's op as JSON: the memory, cycles and steps of its program.
#include "description.hpp"

#include "json.hpp"
#include "tile_bytes.hpp"

#include "poplar/graph/state.hpp"

#include <poplar/detail/account.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace tf_ipu_shim {
namespace {

namespace detail = poplar::detail;
using detail::AccountStep;
using poplar::Tensor;

class Description {
 public:
  explicit Description(const BuiltOp& op)
      : op_(op),
        account_(detail::describe(op.graph(), {op.program()})),
        tiles_(op.graph().getTarget().getNumTiles()),
        tiles_per_ipu_(op.graph().getTarget().getTilesPerIPU()) {}

  std::string json() const {
    return "{\"inputs\":" + inputs() + ",\"outputs\":" + outputs() + ",\"temporary\":" + temporary() +
           ",\"steps\":" + steps() + "}";
  }

 private:
  std::string inputs() const {
    JsonList list;
    for (std::size_t i = 0; i < op_.inputs().size(); ++i)
      list.add(JsonList({op_.allocated()[i] ? "1" : "0", runsOf(op_.inputs()[i])}).text());
    return list.text();
  }

  std::string outputs() const {
    std::map<std::size_t, std::size_t> owners;  // by variable, the input that it is
    for (std::size_t i = 0; i < op_.inputs().size(); ++i)
      for (const std::size_t variable : variablesOf(op_.inputs()[i])) owners.emplace(variable, i);
    JsonList list;
    for (const Tensor& output : op_.outputs()) {
      std::string alias = "-1";
      for (const std::size_t variable : variablesOf(output))
        if (owners.count(variable) > 0) alias = std::to_string(owners[variable]);
      list.add(JsonList({alias, runsOf(output)}).text());
    }
    return list.text();
  }

  // Everything but inputs and outputs.
  std::string temporary() const {
    std::set<std::size_t> others;
    for (const auto* tensors : {&op_.inputs(), &op_.outputs()})
      for (const Tensor& tensor : *tensors) others.merge(variablesOf(tensor));
    ByTile bytes(tiles_, tiles_per_ipu_);
    for (unsigned tile = 0; tile < tiles_; ++tile) bytes.add(tile, account_.tile_bytes[tile]);
    for (const std::size_t variable : others)
      for (const auto& [tile, size] : account_.variables[variable].tile_bytes) bytes.subtract(tile, size);
    return bytes.runs();
  }

  std::string steps() const {
    JsonList list;
    for (const AccountStep& step : account_.steps) {
      if (step.kind != AccountStep::Kind::ComputeSet && step.kind != AccountStep::Kind::Copy) continue;
      if (step.exchange_bytes > 0) list.add(exchange(step));
      if (!step.tile_cycles.empty()) list.add(compute(step));
    }
    return list.text();
  }

  // The bytes are taken to be even on the tiles that compute.
  std::string exchange(const AccountStep& step) const {
    const std::uint64_t tiles = step.tile_cycles.empty() ? std::min<std::uint64_t>(tiles_, step.exchange_bytes / 4 + 1)
                                                         : step.tile_cycles.size();
    const std::uint64_t received = (step.exchange_bytes + tiles - 1) / tiles;
    return JsonList({quoted("exchange"), quoted(step.name), "0", std::to_string(tiles), "0",
                     std::to_string(step.exchange_bytes), std::to_string(received), quoted(""), "0",
                     std::to_string(step.times)})
        .text();
  }

  std::string compute(const AccountStep& step) const {
    std::map<unsigned, std::uint64_t> of_tile;  // of one IPU: several work at the same time
    for (const auto& [tile, cycles] : step.tile_cycles) {
      auto& most = of_tile[tile % tiles_per_ipu_];
      most = std::max(most, cycles);
    }
    std::uint64_t total = 0;
    for (const auto& [tile, cycles] : of_tile) total += cycles;
    std::string vertex;
    std::size_t most = 0, count = 0;
    for (const auto& [type, number] : step.vertices) {
      if (number > most) vertex = type;
      most = std::max(most, number);
      count += number;
    }
    return JsonList({quoted("compute"), quoted(step.name), std::to_string(step.cycles),
                     std::to_string(of_tile.size()), std::to_string(total), "0", "0", quoted(vertex),
                     std::to_string(count), std::to_string(step.times)})
        .text();
  }

  static std::set<std::size_t> variablesOf(const Tensor& tensor) {
    std::set<std::size_t> variables;
    if (!tensor.valid()) return variables;
    for (const detail::Region& region : detail::regionsOf(detail::viewOf(tensor)))
      variables.insert(detail::variableOf(region.address));
    return variables;
  }

  std::string runsOf(const Tensor& tensor) const {
    ByTile bytes(tiles_, tiles_per_ipu_);
    if (tensor.valid()) {
      const std::size_t size = detail::typeSize(tensor.elementType());
      visitTiles(op_.graph().state(), detail::viewOf(tensor),
                 [&](std::size_t, std::size_t count, const unsigned* tile) {
                   if (tile != nullptr) bytes.add(*tile, count * size);
                 });
    }
    return bytes.runs();
  }

  const BuiltOp& op_;
  const detail::Account account_;
  const unsigned tiles_, tiles_per_ipu_;
};

}  // namespace

std::string describe(const BuiltOp& op) { return Description(op).json(); }

}  // namespace tf_ipu_shim
