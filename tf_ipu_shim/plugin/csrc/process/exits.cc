// Implements the end of a process without its exit handlers.
#include "process/exits.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>

namespace tf_ipu_shim {
namespace {

void ExitIfInUse(int status, void* in_use) {
  if (!reinterpret_cast<bool (*)()>(in_use)()) return;
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

void SkipExitHandlersIf(bool (*in_use)()) { on_exit(ExitIfInUse, reinterpret_cast<void*>(in_use)); }

}  // namespace tf_ipu_shim
