// Adds the streams, remote buffers and tensors of a graph that the host reads and writes.
#include "poplar/graph/state.hpp"
#include "poplar/target/option_tables.hpp"

#include <ostream>

namespace poplar {

namespace {

template <class Map>
void checkNew(const char* function, const Map& known, const std::string& handle) {
  if (known.count(handle))
    throw graph_object_creation_error(std::string(function) + ": the handle '" + handle +
                                      "' is used already. Pass another name.");
}

void checkSize(const std::string& function, const std::string& handle, Type type, std::size_t count) {
  detail::typeSize(type);
  if (count >> detail::index_bits)
    throw graph_object_creation_error(function + ": '" + handle + "' has " + std::to_string(count) +
                                      " elements; expected fewer than 2^" + std::to_string(detail::index_bits) +
                                      ". Pass a smaller number.");
}

DataStream addStream(detail::GraphState& graph, const char* function, StringRef handle, Type type, std::size_t count,
                     DataStreamType direction, ReplicatedStreamMode mode) {
  checkNew(function, graph.streams, handle);
  checkSize(function, handle, type, count);
  const DataStream stream(static_cast<unsigned>(graph.streams.size()), handle, type, count, direction, mode);
  graph.streams.emplace(handle.str(), stream);
  return stream;
}

}  // namespace

DataStream Graph::addHostToDeviceFIFO(StringRef handle, const Type& type, std::size_t count, ReplicatedStreamMode mode,
                                      const OptionFlags& options) {
  detail::checkOptions("addHostToDeviceFIFO", options, detail::stream_options);
  return addStream(*state_, "addHostToDeviceFIFO", handle, type, count, DataStreamType::HostToDeviceFIFO, mode);
}

DataStream Graph::addDeviceToHostFIFO(StringRef handle, const Type& type, std::size_t count,
                                      const OptionFlags& options) {
  detail::checkOptions("addDeviceToHostFIFO", options, detail::stream_options);
  return addStream(*state_, "addDeviceToHostFIFO", handle, type, count, DataStreamType::DeviceToHostFIFO,
                   ReplicatedStreamMode::REPLICATE);
}

RemoteBuffer Graph::addRemoteBuffer(StringRef handle, const Type& type, std::size_t count, std::size_t repeats, bool,
                                    bool) {
  checkNew("addRemoteBuffer", state_->remote_buffers, handle);
  checkSize("addRemoteBuffer", handle, type, detail::product({count, repeats}));
  const RemoteBuffer buffer(handle, type, count, repeats);
  state_->remote_buffers.emplace(handle.str(), buffer);
  return buffer;
}

using detail::viewIn;

void Graph::createHostWrite(StringRef handle, const Tensor& tensor, bool) {
  checkNew("createHostWrite", state_->host_writes, handle);
  viewIn(*state_, "createHostWrite", tensor);
  if (!tensor.isParallelWriteable())
    throw graph_object_creation_error("createHostWrite: the tensor of '" + handle.str() +
                                      "' has constants or an element twice. Pass a tensor of variables.");
  state_->host_writes.emplace(handle.str(), tensor);
}

void Graph::createHostRead(StringRef handle, const Tensor& tensor, bool) {
  checkNew("createHostRead", state_->host_reads, handle);
  viewIn(*state_, "createHostRead", tensor);
  state_->host_reads.emplace(handle.str(), tensor);
}

}  // namespace poplar
