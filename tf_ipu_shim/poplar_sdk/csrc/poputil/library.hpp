// Includes what the sources of PopLibs need, and shortens its names: tensors, kernels, options and their tables.
#ifndef tf_ipu_shim_poputil_library_hpp
#define tf_ipu_shim_poputil_library_hpp

#include <algorithm>
#include <cmath>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poputil/detail/kernels.hpp>
#include <string>
#include <vector>

#include "poputil/option_tables.hpp"

namespace poputil::library {

using poplar::OptionFlags;
using poplar::Tensor;
using poplar::program::Sequence;
using poplar::detail::checkOptions;
using poplar::detail::isSet;
using poplar::detail::valueOf;
using poputil::detail::fail;
using poputil::detail::Kernel;
using poputil::detail::KernelArguments;
using Shape = std::vector<std::size_t>;

}  // namespace poputil::library

#endif
