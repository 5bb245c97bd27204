// One run of a compiled program: its memory, vertices, streams and remote buffers.
#ifndef poplar_csrc_runner_hpp
#define poplar_csrc_runner_hpp

#include "poplar/engine/float_checks.hpp"
#include "poplar/engine/plan.hpp"

#include <poplar/StreamCallback.hpp>

#include <atomic>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace poplar::detail {

// Zeroed memory in separate pages: untouched pages cost nothing.
class Pages {
 public:
  explicit Pages(std::size_t bytes);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  std::size_t bytes_;
};

// The vertices of a compute set for one replica: their states, bound to the replica's memory.
class Vertices {
 public:
  // `origin` differs between compute sets and replicas, so that their random numbers do.
  Vertices(const ComputeSetPlan& plan, const Memory& memory, const FloatChecks& checks, std::uint64_t origin);
  ~Vertices();
  Vertices(const Vertices&) = delete;
  Vertices& operator=(const Vertices&) = delete;
  // Runs all; returns whether every compute() returned true.
  bool run();

 private:
  void construct();
  void bind();
  void readEarly();
  bool runOne(const VertexPlan& vertex);
  bool runPart(std::size_t begin, std::size_t end);
  bool compute(const VertexPlan& vertex);
  bool computeChecked(const VertexPlan& vertex);
  void bindField(const VertexPlan& vertex, const FieldPlan& field);
  std::string nameOf(const VertexPlan& vertex) const;
  [[noreturn]] void fail(const VertexPlan& vertex) const;

  const ComputeSetPlan& plan_;
  const Memory& memory_;
  const FloatChecks& checks_;
  std::uint64_t origin_, runs_ = 0, random_ = 0;
  Pages states_, scratch_;
  std::chrono::nanoseconds last_{0};
};

struct Replica {
  std::unique_ptr<Pages> pages;
  Memory memory;
  std::vector<std::unique_ptr<Vertices>> compute_sets;
};

// The host's end of a stream.
struct Connection {
  char *begin = nullptr, *end = nullptr, *at = nullptr;
  bool fixed = false;
  std::map<unsigned, std::shared_ptr<StreamCallbackHandle>> callbacks;
};

class Runner {
 public:
  Runner(std::shared_ptr<const Compiled> compiled, const OptionFlags& options);

  // Starts the random generator from `prng.seed`, if that is set.
  void seed() const;
  void run(unsigned program);
  const Compiled& compiled() const { return *compiled_; }
  const FloatChecks& floatChecks() const { return checks_; }
  std::vector<Replica>& replicas() { return replicas_; }
  // A buffer of a step that is reused by later runs.
  char* scratch(std::size_t slot, std::size_t bytes);

  bool execute(unsigned compute_set, Replica& replica);
  // The value of a single integer; an error if replicas have different ones.
  std::int64_t scalar(const Access& access, Type type);

  void connect(const std::string& handle, char* begin, char* end, bool fixed);
  void connect(const std::string& handle, unsigned replica, StreamCallbackHandle callback);
  void toDevice(const DataStream& stream, const Access& access, std::size_t slot);
  void fromDevice(const DataStream& stream, const Access& access, std::size_t slot);
  std::vector<char>& remoteBuffer(const std::string& handle, unsigned replica);

  void connectHostFunction(const std::string& handle, unsigned replica, HostCallbackHandle callback);
  void callHost(const std::string& handle, unsigned replica, const KernelArguments& arguments) const;

  void write(const std::string& handle, const char* begin, const char* end);
  void read(const std::string& handle, char* begin, char* end);

  bool loaded = false;  // whether it is on a device
  bool counts_runs = true;                       // while execution is profiled
  std::map<unsigned, std::uint64_t> run_counts;  // of each program, since the profile was reset
  std::ostream* print_stream = &std::cerr;
  std::uint64_t cycles = 0;  // modelled, of the steps that ran; counted where a program reads them

 private:
  void initialise();
  std::size_t checkedBytes(const char* function, const std::string& handle, const Tensor& tensor, const char* begin,
                           const char* end) const;
  Connection& connectionOf(const DataStream& stream);
  char* nextBuffer(Connection& connection, const DataStream& stream, std::size_t bytes);

  std::shared_ptr<const Compiled> compiled_;
  FloatChecks checks_;
  std::string seed_;
  std::vector<Replica> replicas_;
  std::map<std::size_t, std::vector<char>> scratch_;
  std::map<std::string, Connection> connections_;
  std::map<std::pair<std::string, unsigned>, HostCallbackHandle> host_functions_;
  std::map<std::pair<std::string, unsigned>, std::vector<char>> remote_;
  std::vector<char> staging_;
};

// Writes a tensor's elements as PrintTensor does.
void printTensor(std::ostream& out, const PrintStep& step, const char* data);

}  // namespace poplar::detail

#endif
