// The options of collectives.
#ifndef tf_ipu_shim_gcl_option_tables_hpp
#define tf_ipu_shim_gcl_option_tables_hpp

#include "poputil/option_tables.hpp"

namespace poputil::library {

inline constexpr const char *no_rings = "replicas exchange their data directly";

// gcl/Collectives.hpp
inline constexpr Option collective_options[] = {
    {"method",
     "auto, broadcast, clockwise_ring, anticlockwise_ring, bidirectional_ring_pair, meet_in_middle_ring, "
     "quad_directional_ring",
     no_rings},
    {"topology", "auto, rung-ring-2, rung-ring-4, rung-ring-8, ring-on-line, peripheral-ring", no_rings},
    {"useReplicatedImplementation", "true, false", no_rings},
    {"useSynclessCollectives", "true, false, hybrid, auto", no_rings},
    {"maxBytesPerTile", "Integer", "no buffer limits an exchange"},
    {"syncful.allToAll", "Text", no_rings},
};

}  // namespace poputil::library

#endif
