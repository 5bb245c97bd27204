// The memory of variables, and copies of elements between views and buffers.
#ifndef poplar_csrc_memory_hpp
#define poplar_csrc_memory_hpp

#include "poplar/views/view.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace poplar::detail {

// Where the variables of one replica are.
struct Memory {
  std::vector<char*> bases;
  char* at(Address address, std::size_t size) const { return bases[variableOf(address)] + indexOf(address) * size; }
};

// A strided copy: elements at equal distances in the source and the destination.
struct Move {
  Address from, to;  // an address, or an element of a buffer
  std::int64_t count, from_step, to_step;
};

// A list of moves, cut so that threads can share it.
class Moves {
 public:
  Moves() = default;
  // Between a view and a row-major buffer.
  Moves(const std::vector<Span>& spans, std::size_t size);
  // From one view to another of as many elements.
  Moves(const std::vector<Span>& from, const std::vector<Span>& to, std::size_t size);

  void gather(const Memory& memory, char* buffer) const;         // of the first constructor
  void scatter(const char* buffer, const Memory& memory) const;  // of the first constructor
  void copy(const Memory& from, const Memory& to) const;         // of the second
  std::size_t bytes() const { return bytes_; }

 private:
  template <class Source, class Target>
  void move(const Source& source, const Target& target, bool reversed) const;
  void add(Move move);

  std::vector<Move> moves_;
  std::size_t size_ = 1, bytes_ = 0;
};

// How a step reads or writes a view: in place where it is contiguous, else through a buffer.
struct Access {
  Address address = 0;
  std::size_t count = 0, size = 1;
  bool direct = false;
  std::size_t scratch = 0;  // offset of the buffer
  Moves moves;              // of the buffer

  std::size_t bytes() const { return count * size; }
  char* pointer(const Memory& memory, char* scratch_base) const {
    return direct ? memory.at(address, size) : scratch_base + scratch;
  }
  void load(const Memory& memory, char* scratch_base) const {
    if (!direct) moves.gather(memory, scratch_base + scratch);
  }
  void store(const Memory& memory, const char* scratch_base) const {
    if (!direct) moves.scatter(scratch_base + scratch, memory);
  }
};

// Access to a view; `scratch_bytes` grows by the buffer that it needs.
Access accessTo(const View& view, std::size_t size, unsigned alignment, bool in_place, std::size_t& scratch_bytes);

}  // namespace poplar::detail

#endif
