// Writes the trace file of the process, and lists its channels.
#ifndef tf_ipu_shim_pvti_trace_file_hpp
#define tf_ipu_shim_pvti_trace_file_hpp

#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include <pvti/pvti.hpp>

namespace pvti::detail {

// The process's trace. Events of all threads are written in the order of their calls.
class TraceFile {
 public:
  // Opened at the first use, if PVTI_OPTIONS asks for a trace.
  static TraceFile &get();
  TraceFile();
  ~TraceFile() { close(); }

  bool isOpen() const { return file_.is_open(); }
  const std::string &path() const { return path_; }
  // `phase` is B, E, i or C of Chrome's format; `arguments` is JSON.
  void write(char phase, const std::string &category, const std::string &name, const std::string &arguments = "{}");
  void close();

 private:
  std::mutex mutex_;
  std::ofstream file_;
  std::string path_;
  bool is_first_ = true;
};

// The channels of the process.
class Channels {
 public:
  static Channels &get();
  void add(TraceChannel *channel);
  void remove(TraceChannel *channel);
  std::vector<TraceChannel *> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<TraceChannel *> channels_;
};

}  // namespace pvti::detail

#endif
