// The exceptions that Poplar's functions throw.
#ifndef poplar_exceptions_hpp
#define poplar_exceptions_hpp

#include <ostream>
#include <stdexcept>
#include <string>

namespace poplar {

struct poplar_error : std::runtime_error {
  std::string type;
  explicit poplar_error(const std::string& text) : std::runtime_error(text), type("poplar_error") {}
  explicit poplar_error(const char* text) : poplar_error(std::string(text)) {}

 protected:
  poplar_error(const char* name, const std::string& text) : std::runtime_error(text), type(name) {}
};

#define POPLAR_EXCEPTION(NAME, BASE)                                \
  struct NAME : BASE {                                              \
    explicit NAME(const std::string& text) : BASE(#NAME, text) {}   \
    explicit NAME(const char* text) : BASE(#NAME, text) {}          \
                                                                    \
   protected:                                                       \
    NAME(const char* name, const std::string& text) : BASE(name, text) {} \
  };

POPLAR_EXCEPTION(control_program_error, poplar_error)
POPLAR_EXCEPTION(file_load_error, poplar_error)
POPLAR_EXCEPTION(graph_connection_error, poplar_error)
POPLAR_EXCEPTION(graph_cycle_error, poplar_error)
POPLAR_EXCEPTION(graph_object_creation_error, poplar_error)
POPLAR_EXCEPTION(graph_object_load_error, poplar_error)
POPLAR_EXCEPTION(graph_program_compilation_error, poplar_error)
POPLAR_EXCEPTION(graph_recursion_error, poplar_error)
POPLAR_EXCEPTION(graph_replication_error, poplar_error)
POPLAR_EXCEPTION(index_error, poplar_error)
POPLAR_EXCEPTION(internal_error, poplar_error)
POPLAR_EXCEPTION(invalid_machine_model, poplar_error)
POPLAR_EXCEPTION(invalid_option, poplar_error)
POPLAR_EXCEPTION(invalid_tile_mapping, poplar_error)
POPLAR_EXCEPTION(memory_elem_constraints_error, poplar_error)
POPLAR_EXCEPTION(missing_cycle_estimate, poplar_error)
POPLAR_EXCEPTION(missing_perf_estimate, missing_cycle_estimate)
POPLAR_EXCEPTION(no_environment, poplar_error)
POPLAR_EXCEPTION(no_size_specified, poplar_error)
POPLAR_EXCEPTION(overflow_error, poplar_error)
POPLAR_EXCEPTION(parse_error, poplar_error)
POPLAR_EXCEPTION(profiling_disabled, poplar_error)
POPLAR_EXCEPTION(stream_connection_error, poplar_error)
POPLAR_EXCEPTION(stream_memory_allocation_error, poplar_error)
POPLAR_EXCEPTION(symbol_error, poplar_error)
POPLAR_EXCEPTION(tensor_creation_error, poplar_error)
POPLAR_EXCEPTION(tensor_io_state_error, poplar_error)
POPLAR_EXCEPTION(type_error, poplar_error)
POPLAR_EXCEPTION(undefined_value, poplar_error)
POPLAR_EXCEPTION(unknown_field, poplar_error)
POPLAR_EXCEPTION(unknown_vertex_type, poplar_error)
POPLAR_EXCEPTION(runtime_error, poplar_error)
POPLAR_EXCEPTION(application_runtime_error, runtime_error)
POPLAR_EXCEPTION(system_runtime_error, runtime_error)
POPLAR_EXCEPTION(unrecoverable_runtime_error, system_runtime_error)
POPLAR_EXCEPTION(unknown_runtime_error, system_runtime_error)

#undef POPLAR_EXCEPTION

struct link_error : poplar_error {
  std::string output;  // of the linker
  explicit link_error(const std::string& text, const std::string& out = "") : poplar_error("link_error", text), output(out) {}
};

class ProfileValue;

struct graph_memory_allocation_error : poplar_error {
  explicit graph_memory_allocation_error(const std::string& text) : poplar_error("graph_memory_allocation_error", text) {}
};

enum class RecoveryAction { IPU_RESET, LINK_RESET, PARTITION_RESET, FULL_RESET };

inline std::string toString(RecoveryAction action) {
  switch (action) {
    case RecoveryAction::IPU_RESET: return "IPU_RESET";
    case RecoveryAction::LINK_RESET: return "LINK_RESET";
    case RecoveryAction::PARTITION_RESET: return "PARTITION_RESET";
    case RecoveryAction::FULL_RESET: return "FULL_RESET";
  }
  return "unknown";
}
inline std::ostream& operator<<(std::ostream& out, RecoveryAction action) { return out << toString(action); }

struct recoverable_runtime_error : system_runtime_error {
  explicit recoverable_runtime_error(const std::string& text, RecoveryAction action = RecoveryAction::IPU_RESET)
      : system_runtime_error("recoverable_runtime_error", text), action_(action) {}
  RecoveryAction getRecoveryAction() const { return action_; }

 private:
  RecoveryAction action_;
};

}  // namespace poplar

#endif
