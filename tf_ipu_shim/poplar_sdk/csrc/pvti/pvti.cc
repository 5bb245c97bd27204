// Records tracepoints, and points of plots, of enabled channels in the process's trace.
#include <pvti/pvti.hpp>

#include "pvti/trace_file.hpp"

namespace pvti {

using namespace detail;

TraceChannel traceDrivers("Drivers");
TraceChannel tracePoplar("Poplar");
TraceChannel traceFramework("Framework");

TraceChannel::TraceChannel(const char *name, bool enabled) : name(name), enabled(enabled) { Channels::get().add(this); }
TraceChannel::TraceChannel(const TraceChannel &other) : TraceChannel(other.name, other.enabled) {}
TraceChannel::~TraceChannel() { Channels::get().remove(this); }

void enableTraceChannel(TraceChannel *channel) { channel->enabled = true; }
void disableTraceChannel(TraceChannel *channel) { channel->enabled = false; }
bool checkTraceChannel(TraceChannel *channel) { return channel->enabled && TraceFile::get().isOpen(); }
std::vector<TraceChannel *> listTraceChannel(void) { return Channels::get().all(); }
std::string getCurrentTraceFilename(void) { return TraceFile::get().isOpen() ? TraceFile::get().path() : ""; }
void closeTrace() { TraceFile::get().close(); }

Metadata createJsonMetadata(const std::string &json) { return Metadata(json); }

namespace {

void record(char phase, const TraceChannel &channel, const std::string &label, const Metadata *metadata = nullptr) {
  if (channel.enabled) TraceFile::get().write(phase, channel.name, label, metadata ? metadata->json() : "{}");
}

}  // namespace

Tracepoint::Tracepoint(TraceChannel *channel, const std::string &traceLabel)
    : Tracepoint(channel, traceLabel, nullptr) {}
Tracepoint::Tracepoint(TraceChannel *channel, const std::string traceLabel, Metadata *metadata)
    : channel_(channel), label_(traceLabel) {
  record('B', *channel, traceLabel, metadata);
}
Tracepoint::~Tracepoint() { record('E', *channel_, label_); }

void Tracepoint::begin(TraceChannel *channel, const std::string &traceLabel) { record('B', *channel, traceLabel); }
void Tracepoint::begin(TraceChannel *channel, const std::string &traceLabel, Metadata *metadata) {
  record('B', *channel, traceLabel, metadata);
}
void Tracepoint::end(TraceChannel *channel, const std::string &traceLabel) { record('E', *channel, traceLabel); }
void Tracepoint::event(TraceChannel *channel, const std::string &traceLabel) { record('i', *channel, traceLabel); }

void Series::addPoint(double value) {
  if (enabled_) TraceFile::get().write('C', "graph", graph_, "{\"" + name_ + "\":" + std::to_string(value) + '}');
}

Client::Client() { TraceFile::get(); }

}  // namespace pvti
