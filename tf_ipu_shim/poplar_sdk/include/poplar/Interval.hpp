// Half-open intervals of indices.
#ifndef poplar_Interval_hpp
#define poplar_Interval_hpp

#include <cstddef>
#include <functional>
#include <ostream>
#include <tuple>
#include <utility>

namespace poplar {

template <class T>
struct GenericInterval {
  constexpr GenericInterval() = default;
  constexpr GenericInterval(T begin, T end) : begin_(begin), end_(end) {}
  constexpr GenericInterval(const std::pair<T, T>& bounds) : begin_(bounds.first), end_(bounds.second) {}

  constexpr T begin() const { return begin_; }
  constexpr T end() const { return end_; }
  constexpr T lower() const { return begin_; }
  constexpr T upper() const { return end_; }
  constexpr T size() const { return end_ - begin_; }

 private:
  T begin_{};
  T end_{};
};

template <class T>
constexpr bool operator==(const GenericInterval<T>& a, const GenericInterval<T>& b) {
  return a.begin() == b.begin() && a.end() == b.end();
}
template <class T>
constexpr bool operator!=(const GenericInterval<T>& a, const GenericInterval<T>& b) {
  return !(a == b);
}
template <class T>
constexpr bool operator<(const GenericInterval<T>& a, const GenericInterval<T>& b) {
  return a.begin() < b.begin() || (a.begin() == b.begin() && a.end() < b.end());
}
template <class T>
constexpr bool operator>(const GenericInterval<T>& a, const GenericInterval<T>& b) {
  return b < a;
}
template <class T>
constexpr bool operator<=(const GenericInterval<T>& a, const GenericInterval<T>& b) {
  return !(b < a);
}
template <class T>
constexpr bool operator>=(const GenericInterval<T>& a, const GenericInterval<T>& b) {
  return !(a < b);
}
template <class T>
std::ostream& operator<<(std::ostream& out, const GenericInterval<T>& interval) {
  return out << '[' << interval.begin() << ',' << interval.end() << ')';
}

using Interval = GenericInterval<std::size_t>;

}  // namespace poplar

template <class T>
struct std::hash<poplar::GenericInterval<T>> {
  std::size_t operator()(const poplar::GenericInterval<T>& interval) const {
    return std::hash<T>()(interval.begin()) * 31 + std::hash<T>()(interval.end());
  }
};

#endif
