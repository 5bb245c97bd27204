// Writes a trace as Chrome's JSON: an array of events, which viewers read even if a program ended before its last line.
#include "pvti/trace_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <poplar/OptionFlags.hpp>
#include <thread>

namespace pvti::detail {

namespace {

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result + '"';
}

// The folder of the trace; empty if PVTI_OPTIONS asks for none.
std::string directoryOfOptions() {
  bool is_enabled = false;
  std::string directory = ".";
  poplar::OptionFlags options;
  poplar::readJSONFromEnv("PVTI_OPTIONS", options);
  for (const auto &option : options) {
    if (option.first == "enable") is_enabled = option.second == "true";
    if (option.first == "directory") directory = option.second;
  }
  return is_enabled ? directory : "";
}

}  // namespace

TraceFile &TraceFile::get() {
  static TraceFile file;
  return file;
}

TraceFile::TraceFile() {
  const std::string directory = directoryOfOptions();
  if (directory.empty()) return;
  path_ = directory + "/pvti_" + std::to_string(getpid()) + ".json";
  file_.open(path_);
  if (!file_) std::cerr << "PVTI_OPTIONS: cannot write " << path_ << ". Set \"directory\" to a folder that exists.\n";
}

void TraceFile::write(char phase, const std::string &category, const std::string &name, const std::string &arguments) {
  if (!isOpen()) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const auto thread = std::hash<std::thread::id>()(std::this_thread::get_id()) % 1000000;
  const std::lock_guard lock(mutex_);
  file_ << (is_first_ ? "[\n" : ",\n") << "{\"ph\":\"" << phase << "\",\"cat\":" << quoted(category)
        << ",\"name\":" << quoted(name) << ",\"pid\":" << getpid() << ",\"tid\":" << thread << ",\"ts\":" << time
        << ",\"args\":" << arguments << '}' << std::flush;
  is_first_ = false;
}

void TraceFile::close() {
  const std::lock_guard lock(mutex_);
  if (!isOpen()) return;
  file_ << (is_first_ ? "[]\n" : "\n]\n");
  file_.close();
}

Channels &Channels::get() {
  static Channels channels;
  return channels;
}

void Channels::add(TraceChannel *channel) {
  const std::lock_guard lock(mutex_);
  channels_.push_back(channel);
}

void Channels::remove(TraceChannel *channel) {
  const std::lock_guard lock(mutex_);
  channels_.erase(std::remove(channels_.begin(), channels_.end(), channel), channels_.end());
}

std::vector<TraceChannel *> Channels::all() const {
  const std::lock_guard lock(mutex_);
  return channels_;
}

}  // namespace pvti::detail
