// Maps elements of tensors to tiles.
#include "poplar/graph/state.hpp"

#include <algorithm>
#include <numeric>

namespace poplar {

using namespace detail;

namespace detail {

void TileMap::assign(std::size_t begin, std::size_t end, unsigned tile) {
  if (begin >= end) return;
  auto piece = pieces_.lower_bound(begin);
  if (piece != pieces_.begin()) {
    auto before = std::prev(piece);
    if (before->second.end > begin) {  // a piece that reaches into the interval, and perhaps beyond
      if (before->second.end > end) pieces_.emplace_hint(piece, end, before->second);
      before->second.end = begin;
      piece = pieces_.upper_bound(before->first);
    }
  }
  while (piece != pieces_.end() && piece->first < end) {
    if (piece->second.end > end) pieces_.emplace(end, piece->second);
    piece = pieces_.erase(piece);
  }
  const bool joins_next = piece != pieces_.end() && piece->first == end && piece->second.tile == tile;
  if (joins_next) {
    end = piece->second.end;
    piece = pieces_.erase(piece);
  }
  if (piece != pieces_.begin()) {
    auto before = std::prev(piece);
    if (before->second.end == begin && before->second.tile == tile) {
      before->second.end = end;
      return;
    }
  }
  pieces_.emplace_hint(piece, begin, Piece{end, tile});
}

}  // namespace detail

namespace {

// The tile of this graph for each physical tile; empty: the same.
std::vector<int> virtualTiles(const std::vector<unsigned>& tiles, std::size_t physical) {
  std::vector<int> result;
  if (tiles.empty()) return result;
  result.assign(physical, -1);
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) result[tiles[tile]] = static_cast<int>(tile);
  return result;
}

const Variable& variableOf(const GraphState& graph, const char* function, VariableRef variable) {
  if (variable.id() < graph.variables.size()) return graph.variables[variable.id()];
  throw poplar_error(std::string(function) + ": the graph has no variable " + std::to_string(variable.id()) + "; it has " +
                     std::to_string(graph.variables.size()) + ". Pass one of Tensor::getVarRegions.");
}

void append(std::vector<Interval>& intervals, std::size_t begin, std::size_t end) {
  if (!intervals.empty() && intervals.back().end() == begin) intervals.back() = Interval(intervals.back().begin(), end);
  else intervals.emplace_back(begin, end);
}

}  // namespace

void Graph::setTileMapping(const Tensor& tensor, unsigned tile) {
  const unsigned physical = convertVirtualTileToPhysicalTile(tile);
  for (const Region& region : regionsOf(viewIn(*state_, "setTileMapping", tensor))) {
    const std::size_t index = indexOf(region.address);
    state_->variableAt(region.address).tiles.assign(index, index + region.length, physical);
  }
}

void Graph::setTileMapping(const Tensor& tensor, const TileToTensorMapping& mapping) {
  const Tensor flat = tensor.flatten();
  for (std::size_t tile = 0; tile < mapping.size(); ++tile)
    for (const Interval& interval : mapping[tile]) setTileMapping(flat.slice(interval), static_cast<unsigned>(tile));
}

Graph::TileToTensorMapping Graph::getTileMapping(const Tensor& tensor, bool requireComplete) const {
  bool complete = true;
  auto mapping = getTileMapping(tensor, &complete);
  if (requireComplete && !complete) {
    for (const Region& region : regionsOf(viewOf(tensor))) {
      const Variable& variable = state_->variableAt(region.address);
      variable.tiles.visit(indexOf(region.address), indexOf(region.address) + region.length,
                           [&](std::size_t begin, std::size_t end, const unsigned* tile) {
                             if (tile) return;
                             throw invalid_tile_mapping("Elements [" + std::to_string(begin) + ":" + std::to_string(end) +
                                                        ") of " + describe(variable) +
                                                        " are not mapped to a tile. Call setTileMapping for them.");
                           });
    }
  }
  return mapping;
}

Graph::TileToTensorMapping Graph::getTileMapping(const Tensor& tensor, bool* isComplete) const {
  TileToTensorMapping mapping(target_.getNumTiles());
  const auto tiles = virtualTiles(tiles_, state_->target.getNumTiles());
  bool complete = true;
  visitTiles(*state_, viewIn(*state_, "getTileMapping", tensor), [&](std::size_t position, std::size_t count, const unsigned* tile) {
    const int here = !tile ? -1 : tiles.empty() ? static_cast<int>(*tile) : tiles[*tile];
    if (here < 0) complete = false;
    else append(mapping[static_cast<std::size_t>(here)], position, position + count);
  });
  if (isComplete) *isComplete = complete;
  return mapping;
}

Tensor Graph::getVariable(VariableRef variable) const {
  const Variable& found = variableOf(*state_, "getVariable", variable);
  return makeTensor(found.type, View(addressOf(variable.id(), 0), found.shape), state_);
}

bool Graph::isConstant(VariableRef variable) const { return variableOf(*state_, "isConstant", variable).constant; }

Graph::TileToTensorMapping Graph::getTensorTileMapping(std::string name) const {
  for (std::size_t i = 0; i < state_->variables.size(); ++i)
    if (state_->variables[i].name == name) return getTileMapping(getVariable(VariableRef(static_cast<unsigned>(i))), false);
  throw poplar_error("getTensorTileMapping: no variable is named '" + name + "'.");
}

std::vector<std::vector<Interval>> Graph::getSortedContiguousRegions(const Tensor& tensor, ArrayRef<Interval> intervals,
                                                                     bool removeAliasedIntervals,
                                                                     std::vector<std::size_t>* aliases) const {
  // Parts of the intervals that are contiguous in memory, by their place there.
  struct Part {
    Address address;
    Interval interval;
    Address end() const { return address + static_cast<Address>(interval.size()); }
  };
  const auto regions = regionsOf(viewIn(*state_, "getSortedContiguousRegions", tensor));
  std::vector<Part> parts;
  for (const Interval& interval : intervals) {
    if (interval.end() > tensor.numElements())
      throw poplar_error("getSortedContiguousRegions: the interval [" + std::to_string(interval.begin()) + "," +
                         std::to_string(interval.end()) + ") is not within the " + std::to_string(tensor.numElements()) +
                         " elements of the tensor. Pass intervals of the flattened tensor.");
    for (std::size_t at = interval.begin(); at < interval.end();) {
      const auto region = std::prev(std::upper_bound(regions.begin(), regions.end(), at,
                                                     [](std::size_t position, const Region& r) { return position < r.position; }));
      const std::size_t end = std::min(interval.end(), region->position + region->length);
      parts.push_back({region->address + static_cast<Address>(at - region->position), Interval(at, end)});
      at = end;
    }
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.address < b.address; });
  std::vector<std::vector<Interval>> sorted;
  if (aliases) aliases->clear();
  Address covered = -1;
  for (Part part : parts) {
    if (removeAliasedIntervals && part.address < covered) {  // the beginning was there before
      const std::size_t skipped = std::min(part.interval.size(), static_cast<std::size_t>(covered - part.address));
      if (aliases) aliases->push_back(part.interval.begin());
      part = {part.address + static_cast<Address>(skipped), Interval(part.interval.begin() + skipped, part.interval.end())};
      if (part.interval.size() == 0) continue;
    }
    if (sorted.empty() || covered != part.address) sorted.emplace_back();
    if (!sorted.back().empty() && sorted.back().back().end() == part.interval.begin()) {
      sorted.back().back() = Interval(sorted.back().back().begin(), part.interval.end());
    } else {
      sorted.back().push_back(part.interval);
    }
    covered = std::max(covered, part.end());
  }
  return sorted;
}

void Graph::reorderToSimplify(Tensor* tensor, ArrayRef<Tensor*> others, bool) const {
  for (const Tensor* other : others)
    if (other->numElements() != tensor->numElements())
      throw poplar_error("reorderToSimplify: another tensor has " + std::to_string(other->numElements()) +
                         " elements; expected the first one's " + std::to_string(tensor->numElements()) +
                         ". Pass tensors of one size.");
  const auto regions = regionsOf(viewIn(*state_, "reorderToSimplify", *tensor));
  const Tensor flat = tensor->flatten();
  std::vector<std::size_t> order(regions.size());
  std::iota(order.begin(), order.end(), 0);
  if (std::is_sorted(order.begin(), order.end(), [&](auto a, auto b) { return regions[a].address < regions[b].address; })) {
    *tensor = flat;
    for (Tensor* other : others) *other = other->flatten();
    return;
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return regions[a].address < regions[b].address; });
  const auto reordered = [&](const Tensor& source) {
    std::vector<Tensor> parts;
    for (std::size_t i : order) parts.push_back(source.slice(regions[i].position, regions[i].position + regions[i].length));
    return concat(parts);
  };
  *tensor = reordered(flat);
  for (Tensor* other : others) *other = reordered(other->flatten());
}

Tensor Graph::findUnbroadcastTensor(const Tensor& tensor) const {
  viewIn(*state_, "findUnbroadcastTensor", tensor);
  Tensor result = tensor;
  for (unsigned d = 0; d < tensor.rank(); ++d) {
    if (result.dim(d) < 2) continue;
    const Tensor first = result.slice(0, 1, d);
    bool same = true;
    for (std::size_t i = 1; same && i < result.dim(d); ++i) same = result.slice(i, i + 1, d) == first;
    if (same) result = first;
  }
  return result;
}

}  // namespace poplar
