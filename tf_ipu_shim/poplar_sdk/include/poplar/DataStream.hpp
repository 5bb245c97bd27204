// Streams between host and device, and remote buffers in the host's memory.
#ifndef poplar_DataStream_hpp
#define poplar_DataStream_hpp

#include <poplar/ReplicatedStreamMode.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/Type.hpp>

#include <cstddef>
#include <string>

namespace poplar {

enum class DataStreamType { HostToDeviceFIFO, DeviceToHostFIFO, HostToDeviceBuffer, DeviceToHostBuffer };

class DataStream {
 public:
  DataStream() = default;
  DataStream(unsigned id, StringRef handle, Type type, std::size_t count, DataStreamType direction,
             ReplicatedStreamMode mode)
      : id_(id), handle_(handle.str()), type_(type), count_(count), direction_(direction), mode_(mode) {}
  std::string handle() const { return handle_; }
  unsigned id() const { return id_; }
  std::size_t numElements() const { return count_; }
  Type elementType() const { return type_; }
  DataStreamType type() const { return direction_; }
  ReplicatedStreamMode replicatedMode() const { return mode_; }
  bool operator==(const DataStream& other) const { return handle_ == other.handle_; }
  bool operator!=(const DataStream& other) const { return !(*this == other); }

 private:
  unsigned id_ = 0;
  std::string handle_;
  Type type_;
  std::size_t count_ = 0;
  DataStreamType direction_ = DataStreamType::HostToDeviceFIFO;
  ReplicatedStreamMode mode_ = ReplicatedStreamMode::REPLICATE;
};

class RemoteBuffer {
 public:
  RemoteBuffer() = default;
  RemoteBuffer(StringRef handle, Type type, std::size_t count, std::size_t repeats)
      : handle_(handle.str()), type_(type), count_(count), repeats_(repeats) {}
  std::string handle() const { return handle_; }
  std::size_t numElements() const { return count_; }
  std::size_t getRepeats() const { return repeats_; }
  Type elementType() const { return type_; }
  bool operator==(const RemoteBuffer& other) const { return handle_ == other.handle_; }

 private:
  std::string handle_;
  Type type_;
  std::size_t count_ = 0, repeats_ = 1;
};

}  // namespace poplar

#endif
