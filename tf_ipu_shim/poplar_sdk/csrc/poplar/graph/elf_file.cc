// Compares the size of a shared library with its headers.
#include "poplar/graph/elf_file.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

namespace poplar::detail {

std::string missingBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(file.tellg(), 0));
  ElfW(Ehdr) header;
  if (!file.seekg(0) || !file.read(reinterpret_cast<char*>(&header), sizeof(header))) return "";
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr))) return "";
  std::uint64_t end = header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize;
  std::vector<ElfW(Phdr)> segments(header.e_phnum);
  if (file.seekg(static_cast<std::streamoff>(header.e_phoff)) &&
      file.read(reinterpret_cast<char*>(segments.data()), static_cast<std::streamsize>(segments.size() * sizeof(segments[0]))))
    for (const auto& segment : segments) end = std::max<std::uint64_t>(end, segment.p_offset + segment.p_filesz);
  if (size >= end) return "";
  return "it was cut short: it has " + std::to_string(size) + " bytes; its header names " + std::to_string(end);
}

}  // namespace poplar::detail
