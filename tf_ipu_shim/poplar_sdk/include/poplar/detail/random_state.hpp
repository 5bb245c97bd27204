// The state of the process's random generator, from which functions without a seed draw.
#ifndef poplar_detail_random_state_hpp
#define poplar_detail_random_state_hpp

#include <poplar/detail/vertex_context.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace poplar::detail {

// The state is one number. Read as words, it begins with that number in two words, and the others follow from them.
// Words that were written are read unchanged until the next draw.
class RandomState {
 public:
  static RandomState& ofProcess();

  void set(std::uint64_t state);
  std::uint64_t state();
  // The next key for a tensor of random numbers.
  std::uint64_t draw();
  std::vector<std::uint32_t> words(std::size_t count);
  void setWords(const std::uint32_t* words, std::size_t count);

 private:
  static std::vector<std::uint32_t> derive(std::uint64_t state, std::size_t count);

  std::mutex mutex_;
  std::uint64_t state_ = 0;
  std::vector<std::uint32_t> written_;
};

}  // namespace poplar::detail

#endif
