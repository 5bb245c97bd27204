// Loads shared libraries, and explains why one cannot be loaded.
#include "loading.hpp"

#include "failure.hpp"

#include "poplar/graph/elf_file.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

namespace tf_ipu_shim {
namespace {

// Users' libraries name Poplar's without a path. Those that are loaded have these names, so that they are found.
void loadPoplarLibraries() {
  static const bool loaded = [] {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(&loadPoplarLibraries), &info) == 0) return false;
    const auto folder = std::filesystem::absolute(info.dli_fname).parent_path();
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".so") dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
    }
    return true;
  }();
  (void)loaded;
}

// Says how to fix an error of the dynamic linker.
std::string explain(const std::string& path, const std::string& error) {
  std::smatch found;
  if (std::regex_search(error, found, std::regex("undefined symbol: ([^\\s,]+)"))) {
    const std::string function = demangled(found[1].str().c_str());
    return path + " cannot be loaded: it calls " + function +
           ", which is not among tf_ipu_shim's Poplar functions. Call another function. Compile a library of "
           "Graphcore's SDK again in a shell with the output of `tf-ipu poplar --shell`.";
  }
  if (std::regex_search(error, found, std::regex("^([^:]+): cannot open shared object file")) && found[1] != path) {
    return path + " cannot be loaded: it is linked to " + found[1].str() +
           ", which does not exist here. Install that library or link without it.";
  }
  return path + " cannot be loaded: " + error + ". Compile it again for this machine.";
}

// Copies a file to another name, because the dynamic linker loads each file name once.
std::string copyInMemory(const std::string& path) {
  const int file = memfd_create(std::filesystem::path(path).filename().c_str(), 0);
  const std::string name = "/proc/self/fd/" + std::to_string(file);
  std::ofstream(name, std::ios::binary) << std::ifstream(path, std::ios::binary).rdbuf();
  return name;
}

}  // namespace

void* loadLibrary(const std::string& path, bool changed) {
  loadPoplarLibraries();
  if (!std::filesystem::exists(path))
    throw Failure(Code::NotFound, path + ": the file does not exist; expected a compiled library. Compile it.");
  if (const std::string reason = poplar::detail::missingBytes(path); !reason.empty())
    throw Failure(Code::Internal, path + " cannot be loaded: " + reason + ". Compile it again.");
  void* const handle = dlopen(changed ? copyInMemory(path).c_str() : path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw Failure(Code::Internal, explain(path, dlerror()));
  return handle;
}

void* findIn(void* library, const std::string& symbol) {
  void* const found = dlsym(library, symbol.c_str());
  Dl_info info;
  link_map* own = nullptr;
  if (found == nullptr || dladdr(found, &info) == 0 || dlinfo(library, RTLD_DI_LINKMAP, &own) != 0) return nullptr;
  return reinterpret_cast<ElfW(Addr)>(info.dli_fbase) == own->l_addr ? found : nullptr;
}

}  // namespace tf_ipu_shim
