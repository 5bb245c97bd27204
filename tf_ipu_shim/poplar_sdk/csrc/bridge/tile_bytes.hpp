// Figures by tile, such as bytes, written as JSON with runs of equal tiles joined.
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
  explicit ByTile(unsigned tiles) : values_(tiles) {}

  void add(unsigned tile, std::uint64_t value) {
    if (tile < values_.size()) values_[tile] += value;
  }
  void subtract(unsigned tile, std::uint64_t value) { values_[tile] -= std::min(values_[tile], value); }

  // Pairs: a value, and how many consecutive tiles have it; without the zeros at the end.
  std::string runs() const {
    JsonList list;
    std::size_t end = values_.size();
    while (end > 0 && values_[end - 1] == 0) --end;
    for (std::size_t first = 0; first < end;) {
      std::size_t last = first;
      while (last < end && values_[last] == values_[first]) ++last;
      list.add(JsonList({std::to_string(values_[first]), std::to_string(last - first)}).text());
      first = last;
    }
    return list.text();
  }

 private:
  std::vector<std::uint64_t> values_;
};

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_TILE_BYTES_HPP_
