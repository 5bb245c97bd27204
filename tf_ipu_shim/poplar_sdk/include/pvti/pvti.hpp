// Tracepoints, and plots of numbers over time, that a program records in a trace. With PVTI_OPTIONS='{"enable":"true"}'
// the trace is a file in Chrome's trace format, in the folder of the option "directory"; otherwise nothing is recorded.
#ifndef pvti_pvti_hpp
#define pvti_pvti_hpp

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace pvti {

// A group of tracepoints.
typedef struct TraceChannel {
  TraceChannel(const char *name, bool enabled = true);
  TraceChannel(const TraceChannel &other);
  TraceChannel &operator=(const TraceChannel &) = default;
  ~TraceChannel();

  const char *name;
  bool enabled;
} TraceChannel;

extern TraceChannel traceDrivers;
extern TraceChannel tracePoplar;
extern TraceChannel traceFramework;

void enableTraceChannel(TraceChannel *channel);
void disableTraceChannel(TraceChannel *channel);
// Whether the channel's tracepoints are recorded.
bool checkTraceChannel(TraceChannel *channel);
std::vector<TraceChannel *> listTraceChannel(void);
// The trace's file; empty if nothing is recorded.
std::string getCurrentTraceFilename(void);
void closeTrace();

// Further text for a tracepoint.
class Metadata {
 public:
  explicit Metadata(std::string json) : json_(std::move(json)) {}
  const std::string &json() const { return json_; }

 private:
  std::string json_;
};
Metadata createJsonMetadata(const std::string &json);

// A span of time, from its construction to its destruction or from begin() to end().
class Tracepoint {
 public:
  Tracepoint(TraceChannel *channel, const std::string &traceLabel);
  Tracepoint(TraceChannel *channel, const std::string traceLabel, Metadata *metadata);
  // Text that does not end with a zero byte.
  Tracepoint(TraceChannel *channel, const char *traceLabel, std::size_t length, Metadata *metadata = nullptr)
      : Tracepoint(channel, std::string(traceLabel, length), metadata) {}
  ~Tracepoint();
  Tracepoint(const Tracepoint &) = delete;
  Tracepoint &operator=(const Tracepoint &) = delete;

  static void begin(TraceChannel *channel, const std::string &traceLabel);
  static void begin(TraceChannel *channel, const std::string &traceLabel, Metadata *metadata);
  static void end(TraceChannel *channel, const std::string &traceLabel);
  static void event(TraceChannel *channel, const std::string &traceLabel);

 private:
  TraceChannel *channel_;
  std::string label_;
};

// Numbers over time, which Graph::addSeries() makes.
class Series {
 public:
  Series(std::string graph, std::string name, bool enabled)
      : graph_(std::move(graph)), name_(std::move(name)), enabled_(enabled) {}
  void addPoint(double value);

 private:
  std::string graph_, name_;
  bool enabled_;
};

class Graph {
 public:
  Graph(const std::string &name, const std::string &unit = "", const bool enable = true)
      : name_(unit.empty() ? name : name + " (" + unit + ")"), enabled_(enable) {}
  Series addSeries(const std::string &name) { return Series(name_, name, enabled_); }

 private:
  std::string name_;
  bool enabled_;
};

// A member of singletons that have tracepoints, so that the trace lives longer than they do.
class Client {
 public:
  Client();
};

}  // namespace pvti

#endif
