// The steps of which control programs consist: copies, loops, branches, calls and compute sets.
#ifndef poplar_Program_hpp
#define poplar_Program_hpp

#include <poplar/DataStream.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/GraphElements.hpp>
#include <poplar/SyncType.hpp>
#include <poplar/Tensor.hpp>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace poplar {

enum class FloatFormat { AUTO, FIXED, SCIENTIFIC, NONE };

// How PrintTensor writes elements.
struct PrintTensorFmt {
  unsigned summariseThreshold = 1000;
  unsigned edgeItems = 3;
  unsigned maxLineWidth = 75;
  unsigned digits = 8;
  FloatFormat floatFormat = FloatFormat::AUTO;
  char separator = ' ';
  char openBracket = '[';
  char closeBracket = ']';

  PrintTensorFmt() = default;
  explicit PrintTensorFmt(unsigned summariseThreshold, unsigned edgeItems = 3, unsigned maxLineWidth = 75,
                          unsigned digits = 8, FloatFormat floatFormat = FloatFormat::AUTO, char separator = ' ',
                          char openBracket = '[', char closeBracket = ']')
      : summariseThreshold(summariseThreshold),
        edgeItems(edgeItems),
        maxLineWidth(maxLineWidth),
        digits(digits),
        floatFormat(floatFormat),
        separator(separator),
        openBracket(openBracket),
        closeBracket(closeBracket) {}
};

namespace detail {
struct Node;
}

namespace program {

// A value: a copy does not see what is added to the original later.
class Program {
 public:
  Program();
  explicit Program(std::shared_ptr<detail::Node> node) : node_(std::move(node)) {}
  bool isEmpty() const;
  const detail::Node& node() const { return *node_; }

 protected:
  std::shared_ptr<detail::Node> node_;
};

class Sequence : public Program {
 public:
  Sequence(const DebugContext& context = {});
  Sequence(const Sequence&) = default;
  Sequence(Sequence&&) = default;
  Sequence& operator=(const Sequence&) = default;
  Sequence& operator=(Sequence&&) = default;
  Sequence(std::initializer_list<Program> programs, const DebugContext& context = {});
  // Implicit, so that a function whose result is a sequence may return any step.
  template <class... Rest, class = std::enable_if_t<(std::is_base_of_v<Program, Rest> && ...)>>
  Sequence(const Program& first, const Rest&... rest) : Sequence(std::initializer_list<Program>{first, rest...}) {}
  void add(const Program& program);
  void add_front(const Program& program);
};

class Execute : public Program {
 public:
  Execute(ComputeSet computeSet, const DebugContext& context = {});
  // The predicate becomes true if every vertex's compute() returned true.
  Execute(ComputeSet computeSet, Tensor outPredicate, const DebugContext& context = {});
};

class Copy : public Program {
 public:
  Copy(Tensor source, Tensor destination, bool dontOutline = false, const DebugContext& context = {});
  Copy(const DataStream& source, Tensor destination, bool optimiseMemory = false, const DebugContext& context = {});
  Copy(Tensor source, const DataStream& destination, bool optimiseMemory = false, const DebugContext& context = {});
  Copy(const RemoteBuffer& source, Tensor destination, const DebugContext& context = {});
  Copy(const RemoteBuffer& source, Tensor destination, Tensor offset, const DebugContext& context = {});
  Copy(Tensor source, const RemoteBuffer& destination, const DebugContext& context = {});
  Copy(Tensor source, const RemoteBuffer& destination, Tensor offset, const DebugContext& context = {});
};

// Copies between replicas: `replicaMap` has the destination replica of each source replica.
class CrossReplicaCopy : public Program {
 public:
  CrossReplicaCopy(Tensor source, Tensor destination, std::map<unsigned, unsigned> replicaMap,
                   const DebugContext& context = {});
};

class WriteUndef : public Program {
 public:
  explicit WriteUndef(Tensor tensor, const DebugContext& context = {});
};

// Says that a tensor has the same value on all replicas. The program reads each replica's own value.
class AssumeEqualAcrossReplicas : public Program {
 public:
  explicit AssumeEqualAcrossReplicas(Tensor tensor, const DebugContext& context = {});
};

class Repeat : public Program {
 public:
  Repeat(std::uint64_t count, const Program& body, const DebugContext& context = {});
};

class RepeatWhile : public Program {
 protected:
  RepeatWhile(const Program& condition, Tensor predicate, bool until, const Program& body, const DebugContext& context);
};

class RepeatWhileTrue : public RepeatWhile {
 public:
  RepeatWhileTrue(const Program& condition, Tensor predicate, const Program& body, const DebugContext& context = {})
      : RepeatWhile(condition, std::move(predicate), true, body, context) {}
};

class RepeatWhileFalse : public RepeatWhile {
 public:
  RepeatWhileFalse(const Program& condition, Tensor predicate, const Program& body, const DebugContext& context = {})
      : RepeatWhile(condition, std::move(predicate), false, body, context) {}
};

class If : public Program {
 public:
  If(Tensor predicate, const Program& whenTrue, const Program& whenFalse, const DebugContext& context = {});
};

class Switch : public Program {
 public:
  using Cases = std::vector<std::pair<std::int32_t, Program>>;
  explicit Switch(Tensor control, const DebugContext& context = {});
  Switch(Tensor control, const Program& byDefault, const DebugContext& context = {});
  Switch(Tensor control, const Cases& cases, const DebugContext& context = {});
  Switch(Tensor control, const Cases& cases, const Program& byDefault, const DebugContext& context = {});
  Switch& add(std::int32_t value, const Program& program);
};

class Call : public Program {
 public:
  explicit Call(Function function, const DebugContext& context = {});
  // The callback gets the arguments' data and fills that of the results.
  Call(HostFunction function, ArrayRef<Tensor> arguments, ArrayRef<Tensor> results, const DebugContext& context = {});
};

class PrintTensor : public Program {
 public:
  explicit PrintTensor(Tensor tensor, const DebugContext& context = {});
  PrintTensor(Tensor tensor, const PrintTensorFmt& format, const DebugContext& context = {});
  PrintTensor(StringRef title, Tensor tensor, const DebugContext& context = {});
  PrintTensor(StringRef title, Tensor tensor, const PrintTensorFmt& format, const DebugContext& context = {});
};

class Sync : public Program {
 public:
  explicit Sync(SyncType type, const DebugContext& context = {});
};

class ErrorProgram : public Program {
 public:
  ErrorProgram(StringRef message, Tensor debugTensor, const DebugContext& context = {});
};

class Abort : public Program {
 public:
  explicit Abort(const DebugContext& context = {});
  // Text as the only argument is the message, not the name of the step.
  explicit Abort(const char* message) : Abort(StringRef(message), {}) {}
  explicit Abort(const std::string& message) : Abort(StringRef(message), {}) {}
  Abort(StringRef message, const DebugContext& context);
};

class AbortOnCondition : public Program {
 public:
  AbortOnCondition(Tensor predicate, const DebugContext& context = {});
  AbortOnCondition(Tensor predicate, const char* message)
      : AbortOnCondition(std::move(predicate), StringRef(message), {}) {}
  AbortOnCondition(Tensor predicate, const std::string& message)
      : AbortOnCondition(std::move(predicate), StringRef(message), {}) {}
  AbortOnCondition(Tensor predicate, StringRef message, const DebugContext& context);
};

// Names a program in profiles.
class AssignName : public Program {
 public:
  AssignName(StringRef name, const Program& program, const DebugContext& context = {});
};

// A part of a program that has a name in profiles.
class Block : public AssignName {
 public:
  explicit Block(const Program& program, const DebugContext& context = {})
      : AssignName(context.getPathName(), program, context) {}
};

}  // namespace program

}  // namespace poplar

#endif
