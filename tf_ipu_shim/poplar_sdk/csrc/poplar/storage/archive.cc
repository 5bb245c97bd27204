// Writes a pointer to a library's function as its library and place there, and finds the function when read.
#include <poplar/detail/archive.hpp>

#include <poplar/exceptions.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

namespace poplar::detail {

namespace {
constexpr auto none = ~std::size_t{0};  // the library of a null pointer
}

AnyFunction Writer::function(AnyFunction function) {
  if (!function) {
    size(none);
    return function;
  }
  Dl_info library{};
  if (!dladdr(reinterpret_cast<void*>(function), &library) || !library.dli_fname)
    throw poplar_error("serialize: a step of the program is a function of no library. Leave it out.");
  const auto known = std::find(libraries_.begin(), libraries_.end(), library.dli_fname);
  const std::uint64_t place = reinterpret_cast<char*>(function) - static_cast<char*>(library.dli_fbase);
  size(static_cast<std::size_t>(known - libraries_.begin()));
  bytes(&place, sizeof place);
  if (known == libraries_.end()) libraries_.emplace_back(library.dli_fname);
  return function;
}

void Reader::bytes(void* data, std::size_t count) {
  if (count > data_.size() - at_) throw poplar_error("deserialize: the file ends too early.");
  if (count == 0) return;
  std::memcpy(data, data_.data() + at_, count);
  at_ += count;
}

std::size_t Reader::size(std::size_t) {
  std::size_t count = 0;
  bytes(&count, sizeof count);
  if (count > data_.size() - at_) throw poplar_error("deserialize: the file ends too early.");
  return count;
}

AnyFunction Reader::function(AnyFunction) {
  std::size_t library = 0;
  std::uint64_t place = 0;
  bytes(&library, sizeof library);
  if (library == none) return nullptr;
  bytes(&place, sizeof place);
  return reinterpret_cast<AnyFunction>(libraries_.at(library) + place);
}

}  // namespace poplar::detail
