// The memory of a user's op on the tiles, and its cycles.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_DESCRIPTION_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_DESCRIPTION_HPP_

#include "built_op.hpp"

#include <string>

namespace tf_ipu_shim {

// JSON: `inputs` are pairs (whether the allocator mapped it, tiles), `outputs` pairs (the input whose memory it has, or
// -1; tiles), `temporary` is the tiles of all else, `steps` are lists of kind, name, cycles, tiles, total, bytes,
// received, vertex, vertices and times. Tiles are pairs: bytes, and how many consecutive tiles have so many.
std::string describe(const BuiltOp& op);

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_DESCRIPTION_HPP_
