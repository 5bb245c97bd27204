// Adds a program's functions to the eager context's library and removes them with the program. So scripts that create
// many programs do not leak functions.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.h"

namespace tf_ipu_shim {

class AddedFunctions {
 public:
  AddedFunctions() = default;
  AddedFunctions(AddedFunctions&& other) noexcept { *this = std::move(other); }
  AddedFunctions& operator=(AddedFunctions&& other) noexcept {
    std::swap(library_, other.library_);
    names_.swap(other.names_);
    return *this;
  }

  // Owns those of `functions` that `library` does not contain yet and that are not the script's own (`given`), which
  // other programs may call. The caller adds them. `library` outlives this object.
  AddedFunctions(tensorflow::FunctionLibraryDefinition* library, const std::vector<tensorflow::FunctionDef>& functions,
                 const tensorflow::FunctionDefLibrary& given)
      : library_(library) {
    std::set<std::string> scripts;
    for (const tensorflow::FunctionDef& function : given.function()) scripts.insert(function.signature().name());
    for (const tensorflow::FunctionDef& function : functions) {
      const std::string& name = function.signature().name();
      if (scripts.count(name) == 0 && library->Find(name) == nullptr) names_.push_back(name);
    }
  }

  ~AddedFunctions() {
    for (const std::string& name : names_) library_->RemoveFunction(name).IgnoreError();
  }

 private:
  tensorflow::FunctionLibraryDefinition* library_ = nullptr;
  std::vector<std::string> names_;
};

}  // namespace tf_ipu_shim
