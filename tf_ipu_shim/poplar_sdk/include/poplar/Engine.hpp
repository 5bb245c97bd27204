// Loads and runs programs.
#ifndef poplar_Engine_hpp
#define poplar_Engine_hpp

#include <poplar/ArrayRef.hpp>
#include <poplar/Device.hpp>
#include <poplar/Executable.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/ProfileValue.hpp>
#include <poplar/Program.hpp>
#include <poplar/StreamCallback.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace poplar {

namespace detail {
class Runner;
}

using ProgressFunc = std::function<void(int, int)>;

Executable compileGraph(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& options = {},
                        ProgressFunc progress = {}, const DebugContext& context = {});

class Engine {
 public:
  Engine(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& options = {},
         ProgressFunc progress = {}, const DebugContext& context = {});
  Engine(const Graph& graph, program::Program program, const OptionFlags& options = {}, ProgressFunc progress = {},
         const DebugContext& context = {})
      : Engine(graph, ArrayRef<program::Program>(&program, 1), options, std::move(progress), context) {}
  // The variables POPLAR_ENGINE_OPTIONS and POPLAR_RUNTIME_OPTIONS override options.
  explicit Engine(const Executable& executable, const OptionFlags& options = {});
  explicit Engine(std::unique_ptr<detail::Runner> runner);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  void prepare(const Device& device);
  void deploy() {}
  void load(const Device& device);
  void run(unsigned program = 0, const std::string& debugName = "");
  void loadAndRun(const Device& device, unsigned program = 0);

  // The stream goes round through the bytes from `begin` to `end`.
  void connectStream(StringRef handle, void* begin, void* end);
  // The stream always uses the buffer at `data`.
  void connectStream(StringRef handle, void* data);
  template <class T>
  void connectStream(StringRef handle, ArrayRef<T> values) {
    connectStream(handle, const_cast<T*>(values.begin()), const_cast<T*>(values.end()));
  }
  void connectStreamToCallback(StringRef handle, unsigned replica, StreamCallbackHandle callback);
  void connectStreamToCallback(StringRef handle, StreamCallbackHandle callback) {
    connectStreamToCallback(handle, 0, std::move(callback));
  }
  void connectHostFunction(StringRef handle, unsigned replica, HostCallbackHandle callback);
  void copyToRemoteBuffer(const void* data, StringRef handle, int repeat, unsigned replica = 0);
  void copyFromRemoteBuffer(StringRef handle, void* data, int repeat, unsigned replica = 0);

  void writeTensor(StringRef handle, const void* begin, const void* end);
  void writeTensor(StringRef handle, const void* begin);
  template <class T>
  void writeTensor(StringRef handle, ArrayRef<T> values) {
    writeTensor(handle, values.data(), values.data() + values.size());
  }
  void readTensor(StringRef handle, void* begin, void* end);
  void readTensor(StringRef handle, void* begin);

  // The host's clock, and the time between two of its readings as text.
  using TimerTimePoint = std::chrono::time_point<std::chrono::steady_clock>;
  static TimerTimePoint getTimeStamp() { return std::chrono::steady_clock::now(); }
  static std::string reportTiming(const TimerTimePoint& start, const TimerTimePoint& end);

  void setPrintStream(std::ostream& out);
  void setPrintTensorStream(std::ostream& out) { setPrintStream(out); }
  // Runs count in the execution profile unless it is disabled.
  void enableExecutionProfiling();
  void disableExecutionProfiling();
  void resetExecutionProfile();
  // Variables and bytes of each tile, the modelled steps of each program that ran, and both. Their keys are our own.
  ProfileValue getGraphProfile() const;
  ProfileValue getExecutionProfile() const;
  ProfileValue getProfile() const;
  void printProfileSummary(std::ostream& out, const OptionFlags& options = {}) const;

  detail::Runner& runner() { return *runner_; }

 private:
  // The runner; after a move from this engine, an error that names the function.
  detail::Runner& ready(const char* function) const;

  std::unique_ptr<detail::Runner> runner_;
};

}  // namespace poplar

#endif
