// Finds shared libraries that were cut short: the dynamic linker maps them, and the process dies when it reads them.
#ifndef poplar_csrc_elf_file_hpp
#define poplar_csrc_elf_file_hpp

#include <string>

namespace poplar::detail {

// Describes the bytes that the file lacks; empty if it has all that its header names, or is no library.
std::string missingBytes(const std::string& path);

}  // namespace poplar::detail

#endif
