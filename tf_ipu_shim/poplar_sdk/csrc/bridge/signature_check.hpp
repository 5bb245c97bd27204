// Finds metadata functions whose parameters are not those of the library's API level.
#ifndef TF_IPU_SHIM_POPLAR_BRIDGE_SIGNATURE_CHECK_HPP_
#define TF_IPU_SHIM_POPLAR_BRIDGE_SIGNATURE_CHECK_HPP_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tf_ipu_shim {

// An argument between bytes, which show whether a function wrote there.
template <class T>
struct Guarded {
  using Bytes = std::array<unsigned char, 64>;
  static constexpr unsigned char untouched = 0x5a;

  Guarded() {
    before.fill(untouched);
    after.fill(untouched);
  }
  Bytes before;
  T value{};
  Bytes after;
};

// The arguments that a metadata function may set.
struct MetadataArguments {
  Guarded<std::vector<std::int64_t>> allocating_indices, replica_identical_outputs;
  Guarded<std::map<std::int64_t, std::int64_t>> aliases;
  Guarded<std::uint32_t> in_place;
  Guarded<bool> is_elementwise, is_stateless, is_hashable;
};

// Calls a metadata function in a child process. Throws a Failure if it crashes, or leaves arguments that are no vectors,
// maps and booleans; `expected` are the parameters that it should have.
void checkSignature(const std::string& what, const std::string& expected,
                    const std::function<void(MetadataArguments&)>& call);

}  // namespace tf_ipu_shim

#endif  // TF_IPU_SHIM_POPLAR_BRIDGE_SIGNATURE_CHECK_HPP_
