// Loads shared libraries that users have linked against Poplar's.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_LOADING_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_LOADING_HPP_

#include <string>

namespace tf_ipu_shim {

// Loads a library and keeps it; `changed` if another version of the file is loaded. Throws a Failure that says why not.
void* loadLibrary(const std::string& path, bool changed);

// A symbol of the library itself, not of those it is linked to; null if it has none.
void* findIn(void* library, const std::string& symbol);

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_LOADING_HPP_
