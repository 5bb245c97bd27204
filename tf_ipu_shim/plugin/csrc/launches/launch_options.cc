// Sets XLA's debug options for single launches by redirecting the function that returns them.
//
// XLA has one set of options for the process. The function `xla::GetDebugOptionsFromFlags` reads it for each
// compilation, on the thread that requests it. TensorFlow's library calls that function through its jump table, whose
// entry is changed to point here.
#include "launches/launch_options.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "tensorflow/compiler/xla/debug_options_flags.h"
#include "tensorflow/core/platform/logging.h"

namespace tf_ipu_shim {
namespace {

constexpr char kFunction[] = "_ZN3xla24GetDebugOptionsFromFlagsEv";
constexpr char kLibrary[] = "libtensorflow_cc.so";

thread_local int launch_scopes = 0, unfused_scopes = 0;
constexpr char kFusion[] = "fusion";  // the name of XLA's pass

xla::DebugOptions GetThreadDebugOptions() {
  xla::DebugOptions options = xla::GetDebugOptionsFromFlags();
  if (launch_scopes > 0) {
    options.set_xla_cpu_enable_fast_min_max(false);
  }
  if (unfused_scopes > 0) options.add_xla_disable_hlo_passes(kFusion);
  return options;
}

// The jump table, as a library's dynamic section describes it.
struct JumpTable {
  explicit JumpTable(const dl_phdr_info* info) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& header = info->dlpi_phdr[i];
      if (header.p_type == PT_DYNAMIC) Read(reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + header.p_vaddr));
    }
  }

  // The offset in the library of the entry that calls a function; 0 if it has none.
  ElfW(Addr) FindEntry(const char* name) const {
    if (first == nullptr || symbols == nullptr || names == nullptr) return 0;
    for (const ElfW(Rela)* entry = first; entry < first + bytes / sizeof(ElfW(Rela)); ++entry) {
      const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(entry->r_info)];
      if (std::strcmp(names + symbol.st_name, name) == 0) return entry->r_offset;
    }
    return 0;
  }

  const ElfW(Rela)* first = nullptr;
  size_t bytes = 0;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;

 private:
  void Read(const ElfW(Dyn)* dynamic) {
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
      if (dynamic->d_tag == DT_JMPREL) first = reinterpret_cast<const ElfW(Rela)*>(dynamic->d_un.d_ptr);
      if (dynamic->d_tag == DT_PLTRELSZ) bytes = dynamic->d_un.d_val;
      if (dynamic->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(dynamic->d_un.d_ptr);
      if (dynamic->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(dynamic->d_un.d_ptr);
    }
  }
};

// The table may be read-only since the library was loaded.
bool WriteEntry(void** entry, void* function, bool stays_writable) {
  const uintptr_t page = sysconf(_SC_PAGESIZE), begin = reinterpret_cast<uintptr_t>(entry) / page * page;
  if (mprotect(reinterpret_cast<void*>(begin), page, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(entry, function, __ATOMIC_RELEASE);
  if (!stays_writable) mprotect(reinterpret_cast<void*>(begin), page, PROT_READ);
  return true;
}

bool IsReadOnly(const dl_phdr_info* info, ElfW(Addr) offset) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_GNU_RELRO && offset >= header.p_vaddr && offset < header.p_vaddr + header.p_memsz) return true;
  }
  return false;
}

int Redirect(dl_phdr_info* info, size_t, void* done) {
  if (std::strstr(info->dlpi_name, kLibrary) == nullptr) return 0;
  const ElfW(Addr) offset = JumpTable(info).FindEntry(kFunction);
  if (offset == 0) return 0;
  void** const entry = reinterpret_cast<void**>(info->dlpi_addr + offset);
  *static_cast<bool*>(done) =
      WriteEntry(entry, reinterpret_cast<void*>(&GetThreadDebugOptions), !IsReadOnly(info, offset));
  return 1;
}

bool RedirectOnce() {
  bool done = false;
  dl_iterate_phdr(Redirect, &done);
  if (!done) {
    LOG(WARNING) << "XLA's options cannot be set only for IPU programs: maxima and minima of NaN may be other numbers in "
                    "mode xla. Set TF_IPU_SHIM_EXECUTION_MODE=kernels, or XLA_FLAGS="
                    "--xla_cpu_enable_fast_min_max=false.";
  }
  return done;
}

}  // namespace

LaunchOptions::LaunchOptions(bool fuses) : fuses_(fuses) {
  static const bool redirected = RedirectOnce();
  (void)redirected;
  ++launch_scopes;
  unfused_scopes += !fuses_;
}

void LaunchOptions::Leave() {
  if (!inside_) return;
  inside_ = false;
  --launch_scopes;
  unfused_scopes -= !fuses_;
}

}  // namespace tf_ipu_shim
