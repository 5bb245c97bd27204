// A type for the number of replicas that a graph is built for.
#ifndef poplar_replication_factor_hpp
#define poplar_replication_factor_hpp

namespace poplar {

struct replication_factor {
  explicit constexpr replication_factor(unsigned factor) : value(factor) {}
  constexpr operator unsigned() const { return value; }
  unsigned value;
};

}  // namespace poplar

#endif
