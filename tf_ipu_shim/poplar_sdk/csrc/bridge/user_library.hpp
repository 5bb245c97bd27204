// A user's shared library with the functions of one or more ops.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_USER_LIBRARY_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_USER_LIBRARY_HPP_

#include "op_call.hpp"

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tf_ipu_shim {

struct Metadata {
  std::vector<std::int64_t> allocating_indices, replica_identical_outputs;
  std::map<std::int64_t, std::int64_t> aliases;  // of an input the output that has its memory
  bool is_elementwise = false, is_stateless = false, is_hashable = false;
};

class UserLibrary {
 public:
  // The library of a call, loaded once. Throws a Failure if it cannot be used. Libraries stay loaded.
  static const UserLibrary& get(const OpCall& call);

  int apiLevel() const { return api_level_; }
  const std::string& path() const { return path_; }

  // Throws a Failure if no function builds the op.
  void require(const OpCall& call) const;
  // The result of `Build_metadata`, or defaults if the library does not have it.
  Metadata metadata(const OpCall& call) const;
  // The result of `Build_allocator` for an operand, or an invalid tensor if the library does not have it.
  poplar::Tensor allocate(const OpCall& call, poplar::Graph& graph, unsigned operand) const;
  // Calls `Build`, or `Build_grad`.
  poplar::program::Program build(const OpCall& call, poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs,
                                 std::vector<poplar::Tensor>& outputs) const;

 private:
  explicit UserLibrary(const std::string& path) : path_(path) {}
  void load(bool changed);
  void checkHeaders() const;
  void checkApiLevel();
  void* find(const std::string& function) const;
  std::string what(const std::string& function) const;

  std::string path_;
  void* handle_ = nullptr;
  mutable std::set<std::pair<std::string, std::uint32_t>> checked_;  // metadata functions, for numbers of inputs
  int api_level_ = 0;
};

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_USER_LIBRARY_HPP_
