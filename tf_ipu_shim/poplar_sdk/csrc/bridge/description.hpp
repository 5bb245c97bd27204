// Describes a user's built op as JSON: its bytes on each tile, and the steps and cycles of its program.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_DESCRIPTION_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_DESCRIPTION_HPP_

#include "built_op.hpp"

#include <string>

namespace tf_ipu_shim {

// Returns JSON with these members. "Tiles" is a list of pairs: bytes, and the number of consecutive tiles with so many.
//   inputs: a pair for each: whether the allocator mapped it, and its tiles
//   outputs: a pair for each: the input whose memory it shares (-1 for none), and its tiles
//   temporary: the tiles of all other memory
//   steps: a list for each: kind, name, cycles, tiles, total, bytes, received, vertex, vertices, times
std::string describe(const BuiltOp& op);

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_DESCRIPTION_HPP_
