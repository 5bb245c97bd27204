// Copies elements between views and buffers.
#include "poplar/engine/memory.hpp"

#include <poplar/detail/kernel.hpp>

#include <algorithm>
#include <cstring>

namespace poplar::detail {

namespace {

constexpr std::int64_t longest_move = 1 << 16;       // elements
constexpr std::size_t parallel_list_bytes = 1 << 18;      // of a list that threads share
constexpr std::size_t bytes_of_part = 1 << 16;

template <class T>
void moveAs(char* to, std::int64_t to_step, const char* from, std::int64_t from_step, std::int64_t count) {
  auto* out = reinterpret_cast<T*>(to);
  const auto* in = reinterpret_cast<const T*>(from);
  for (std::int64_t i = 0; i < count; ++i) out[i * to_step] = in[i * from_step];
}

void moveElements(char* to, std::int64_t to_step, const char* from, std::int64_t from_step, std::int64_t count,
                  std::size_t size) {
  if (to_step == 1 && from_step == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * size);
    return;
  }
  switch (size) {
    case 1: return moveAs<std::uint8_t>(to, to_step, from, from_step, count);
    case 2: return moveAs<std::uint16_t>(to, to_step, from, from_step, count);
    case 4: return moveAs<std::uint32_t>(to, to_step, from, from_step, count);
    default: return moveAs<std::uint64_t>(to, to_step, from, from_step, count);
  }
}

struct Buffer {
  char* first;
  char* at(Address element, std::size_t size) const { return first + static_cast<std::size_t>(element) * size; }
};

}  // namespace

void Moves::add(Move move) {
  bytes_ += static_cast<std::size_t>(move.count) * size_;
  while (move.count > longest_move) {
    moves_.push_back({move.from, move.to, longest_move, move.from_step, move.to_step});
    move.from += longest_move * move.from_step;
    move.to += longest_move * move.to_step;
    move.count -= longest_move;
  }
  moves_.push_back(move);
}

Moves::Moves(const std::vector<Span>& spans, std::size_t size) : size_(size) {
  Address position = 0;
  for (const Span& span : spans) {
    add({span.address, position, span.length, span.step, 1});
    position += span.length;
  }
}

Moves::Moves(const std::vector<Span>& from, const std::vector<Span>& to, std::size_t size) : size_(size) {
  std::size_t i = 0, j = 0;
  std::int64_t done_i = 0, done_j = 0;
  while (i < from.size() && j < to.size()) {
    const std::int64_t count = std::min(from[i].length - done_i, to[j].length - done_j);
    add({from[i].address + done_i * from[i].step, to[j].address + done_j * to[j].step, count, from[i].step, to[j].step});
    if ((done_i += count) == from[i].length) ++i, done_i = 0;
    if ((done_j += count) == to[j].length) ++j, done_j = 0;
  }
}

template <class Source, class Target>
void Moves::move(const Source& source, const Target& target, bool reversed) const {
  const auto part = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Move& m = moves_[i];
      if (reversed) moveElements(target.at(m.from, size_), m.from_step, source.at(m.to, size_), m.to_step, m.count, size_);
      else moveElements(target.at(m.to, size_), m.to_step, source.at(m.from, size_), m.from_step, m.count, size_);
    }
  };
  if (bytes_ < parallel_list_bytes) return part(0, moves_.size());
  parallelFor(moves_.size(), moves_.size() * bytes_of_part / bytes_, part);
}

void Moves::gather(const Memory& memory, char* buffer) const { move(memory, Buffer{buffer}, false); }
void Moves::scatter(const char* buffer, const Memory& memory) const {
  move(Buffer{const_cast<char*>(buffer)}, memory, true);
}
void Moves::copy(const Memory& from, const Memory& to) const { move(from, to, false); }

Access accessTo(const View& view, std::size_t size, unsigned alignment, bool in_place, std::size_t& scratch_bytes) {
  Access access;
  access.count = view.count();
  access.size = size;
  if (in_place) {
    const auto span = view.contiguous();
    if (span && indexOf(span->address) * size % std::max(1u, alignment) == 0) {
      access.address = span->address;
      access.direct = true;
      return access;
    }
  }
  access.moves = Moves(view.spans(), size);
  access.scratch = scratch_bytes;
  scratch_bytes += (access.bytes() + 63) / 64 * 64;
  return access;
}

}  // namespace poplar::detail
