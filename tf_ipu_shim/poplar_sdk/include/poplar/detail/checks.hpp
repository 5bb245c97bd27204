// The error that a checked build (`popc --checked`) throws if an index exceeds a vector's size.
#ifndef POPLAR_DETAIL_CHECKS_HPP
#define POPLAR_DETAIL_CHECKS_HPP

#include <cstddef>
#include <exception>
#include <string>

namespace poplar::detail {

// `field` is the address of the vertex's member, so that the engine can say its name. `row` counts the vectors of a
// vector of vectors; it is negative where the index itself is one of a row, and for plain vectors.
class __attribute__((visibility("default"))) OutOfBounds : public std::exception {
 public:
  OutOfBounds(const void* field, std::ptrdiff_t row, std::size_t index, std::size_t size)
      : field(field), row(row), index(index), size(size) {
    text_ = "index " + std::to_string(static_cast<std::ptrdiff_t>(index)) + " of a vector of " + std::to_string(size) +
            " elements";
    if (row >= 0) text_ += " (row " + std::to_string(row) + ")";
  }

  const char* what() const noexcept override { return text_.c_str(); }

  const void* field;
  std::ptrdiff_t row;
  std::size_t index;
  std::size_t size;

 private:
  std::string text_;
};

}  // namespace poplar::detail

#endif
