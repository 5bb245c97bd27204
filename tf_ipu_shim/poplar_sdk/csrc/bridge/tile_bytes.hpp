// Sums a figure, such as bytes, by tile, and writes it as JSON with runs of equal tiles joined. Of several IPUs, the
// tile with a number has the largest figure of those with it.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_TILE_BYTES_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_TILE_BYTES_HPP_

#include "json.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace tf_ipu_shim {

class ByTile {
 public:
  ByTile(unsigned tiles, unsigned tiles_per_ipu) : values_(tiles), tiles_per_ipu_(tiles_per_ipu) {}

  void add(unsigned tile, std::uint64_t value) {
    if (tile < values_.size()) values_[tile] += value;
  }
  void subtract(unsigned tile, std::uint64_t value) { values_[tile] -= std::min(values_[tile], value); }

  // Pairs: a value, and how many consecutive tiles have it; without the zeros at the end.
  std::string runs() const {
    JsonList list;
    std::vector<std::uint64_t> values(tiles_per_ipu_);
    for (std::size_t tile = 0; tile < values_.size(); ++tile) {
      std::uint64_t& largest = values[tile % tiles_per_ipu_];
      largest = std::max(largest, values_[tile]);
    }
    std::size_t end = values.size();
    while (end > 0 && values[end - 1] == 0) --end;
    for (std::size_t first = 0; first < end;) {
      std::size_t last = first;
      while (last < end && values[last] == values[first]) ++last;
      list.add(JsonList({std::to_string(values[first]), std::to_string(last - first)}).text());
      first = last;
    }
    return list.text();
  }

 private:
  std::vector<std::uint64_t> values_;
  unsigned tiles_per_ipu_;
};

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_TILE_BYTES_HPP_
