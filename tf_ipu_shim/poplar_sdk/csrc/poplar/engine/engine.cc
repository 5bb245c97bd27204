// Implements `poplar::Engine`, which loads and runs compiled programs, and connects their streams.
#include "poplar/engine/runner.hpp"
#include "poplar/target/option_tables.hpp"

#include <poplar/Engine.hpp>

namespace poplar {

using namespace detail;

Executable compileGraph(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& options,
                        ProgressFunc progress, const DebugContext&) {
  checkOptions("Engine", options, engine_options);
  Executable executable(compileProgram(graph.sharedState(), programs));
  if (progress) progress(1, 1);
  return executable;
}

Engine::Engine(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& options,
               ProgressFunc progress, const DebugContext& context)
    : Engine(compileGraph(graph, programs, options, std::move(progress), context), options) {}

Engine::Engine(const Executable& executable, const OptionFlags& options) {
  if (!executable.compiled()) throw poplar_error("Engine: the executable is empty. Pass one of compileGraph.");
  OptionFlags all = options;
  for (const char* variable : {"POPLAR_ENGINE_OPTIONS", "POPLAR_RUNTIME_OPTIONS"}) readJSONFromEnv(variable, all);
  checkOptions("Engine", all, engine_options);
  runner_ = std::make_unique<Runner>(executable.compiled(), all);
}

Engine::Engine(std::unique_ptr<Runner> runner) : runner_(std::move(runner)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Runner& Engine::ready(const char* function) const {
  if (runner_) return *runner_;
  throw poplar_error(std::string(function) + ": the engine was moved from. Use the engine that it was moved to.");
}

namespace {
Runner& loaded(Runner& runner, const char* function) {
  if (runner.loaded) return runner;
  throw poplar_error(std::string(function) + ": the engine is not on a device. Call Engine::load before.");
}
}  // namespace

void Engine::prepare(const Device& device) {
  Runner& runner = ready("Engine::load");
  const Target& built = runner.compiled().graph->target;
  const Target& target = device.getTarget();
  if (target.getNumIPUs() != built.getNumIPUs() || target.getTilesPerIPU() != built.getTilesPerIPU())
    throw poplar_error("Engine::load: the device has " + std::to_string(target.getNumIPUs()) + " IPUs of " +
                       std::to_string(target.getTilesPerIPU()) + " tiles; the graph was built for " +
                       std::to_string(built.getNumIPUs()) + " of " + std::to_string(built.getTilesPerIPU()) +
                       ". Load it on the device whose target the graph has.");
  runner.seed();
  runner.loaded = true;
}
void Engine::load(const Device& device) { prepare(device); }
void Engine::run(unsigned program, const std::string&) { loaded(ready("Engine::run"), "Engine::run").run(program); }
void Engine::loadAndRun(const Device& device, unsigned program) {
  load(device);
  run(program);
}

void Engine::connectStream(StringRef handle, void* begin, void* end) {
  ready("Engine::connectStream").connect(handle, static_cast<char*>(begin), static_cast<char*>(end), false);
}
void Engine::connectStream(StringRef handle, void* data) {
  ready("Engine::connectStream").connect(handle, static_cast<char*>(data), nullptr, true);
}
void Engine::connectStreamToCallback(StringRef handle, unsigned replica, StreamCallbackHandle callback) {
  ready("Engine::connectStreamToCallback").connect(handle, replica, std::move(callback));
}

void Engine::connectHostFunction(StringRef handle, unsigned replica, HostCallbackHandle callback) {
  ready("Engine::connectHostFunction").connectHostFunction(handle, replica, std::move(callback));
}

namespace {
// A row of a remote buffer.
std::pair<char*, std::size_t> remoteRow(Runner& runner, StringRef handle, int repeat, unsigned replica) {
  auto& data = runner.remoteBuffer(handle, replica);
  const auto& buffer = runner.compiled().graph->remote_buffers.at(handle);
  if (repeat < 0 || static_cast<std::size_t>(repeat) >= buffer.getRepeats())
    throw poplar_error("Remote buffer '" + handle.str() + "': row " + std::to_string(repeat) + " does not exist; it has " +
                       std::to_string(buffer.getRepeats()) + " rows.");
  const std::size_t bytes = data.size() / buffer.getRepeats();
  return {data.data() + static_cast<std::size_t>(repeat) * bytes, bytes};
}
}  // namespace

void Engine::copyToRemoteBuffer(const void* data, StringRef handle, int repeat, unsigned replica) {
  const auto [row, bytes] = remoteRow(ready("Engine::copyToRemoteBuffer"), handle, repeat, replica);
  std::copy_n(static_cast<const char*>(data), bytes, row);
}
void Engine::copyFromRemoteBuffer(StringRef handle, void* data, int repeat, unsigned replica) {
  const auto [row, bytes] = remoteRow(ready("Engine::copyFromRemoteBuffer"), handle, repeat, replica);
  std::copy_n(row, bytes, static_cast<char*>(data));
}

void Engine::writeTensor(StringRef handle, const void* begin, const void* end) {
  loaded(ready("Engine::writeTensor"), "Engine::writeTensor").write(handle, static_cast<const char*>(begin), static_cast<const char*>(end));
}
void Engine::writeTensor(StringRef handle, const void* begin) { writeTensor(handle, begin, nullptr); }
void Engine::readTensor(StringRef handle, void* begin, void* end) {
  loaded(ready("Engine::readTensor"), "Engine::readTensor").read(handle, static_cast<char*>(begin), static_cast<char*>(end));
}
void Engine::readTensor(StringRef handle, void* begin) { readTensor(handle, begin, nullptr); }

std::string Engine::reportTiming(const TimerTimePoint& start, const TimerTimePoint& end) {
  return std::to_string(std::chrono::duration<double>(end - start).count()) + " s";
}

void Engine::setPrintStream(std::ostream& out) { ready("Engine::setPrintStream").print_stream = &out; }

}  // namespace poplar
