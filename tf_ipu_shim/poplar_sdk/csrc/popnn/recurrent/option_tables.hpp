// The options of layers of own cells.
#ifndef tf_ipu_shim_popnn_recurrent_option_tables_hpp
#define tf_ipu_shim_popnn_recurrent_option_tables_hpp

#include "poputil/option_tables.hpp"

namespace poputil::library {

// popnn/Rnn.hpp
inline constexpr Option rnn_options[] = {
    {"codeReuse", "true, false", one_kernel},
};

}  // namespace poputil::library

#endif
