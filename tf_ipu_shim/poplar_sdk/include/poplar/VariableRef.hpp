// References to variables, and to intervals of their elements.
#ifndef poplar_VariableRef_hpp
#define poplar_VariableRef_hpp

#include <poplar/Interval.hpp>

#include <functional>
#include <ostream>

namespace poplar {

class VariableRef {
 public:
  VariableRef() = default;
  explicit VariableRef(unsigned id, unsigned replicationFactor = 1) : id_(id), replication_(replicationFactor) {}
  unsigned id() const { return id_; }
  unsigned getReplicationFactor() const { return replication_; }
  bool operator==(const VariableRef& other) const { return id_ == other.id_; }
  bool operator!=(const VariableRef& other) const { return id_ != other.id_; }
  bool operator<(const VariableRef& other) const { return id_ < other.id_; }

 private:
  unsigned id_ = 0, replication_ = 1;
};

struct VariableInterval {
  VariableInterval() = default;
  VariableInterval(VariableRef variable, Interval region) : var(variable), interval(region) {}
  bool operator==(const VariableInterval& other) const { return var == other.var && interval == other.interval; }
  bool operator!=(const VariableInterval& other) const { return !(*this == other); }
  bool operator<(const VariableInterval& other) const {
    return var < other.var || (var == other.var && interval < other.interval);
  }

  VariableRef var;
  Interval interval;
};

inline std::ostream& operator<<(std::ostream& out, const VariableRef& variable) {
  return out << "variable " << variable.id();
}
inline std::ostream& operator<<(std::ostream& out, const VariableInterval& interval) {
  return out << interval.var << interval.interval;
}

}  // namespace poplar

template <>
struct std::hash<poplar::VariableRef> {
  std::size_t operator()(const poplar::VariableRef& variable) const { return variable.id(); }
};

#endif
