// Devices that run programs.
#ifndef poplar_Device_hpp
#define poplar_Device_hpp

#include <poplar/OptionFlags.hpp>
#include <poplar/Target.hpp>

#include <map>
#include <string>
#include <utility>

namespace poplar {

class Device {
 public:
  Device() = default;
  Device(unsigned id, Target target) : id_(id), target_(std::move(target)) {}
  Device(Device&&) noexcept = default;
  Device& operator=(Device&&) noexcept = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  static Device createCPUDevice(unsigned numIPUs = 1) { return createCPUDevice(numIPUs, {}); }
  static Device createCPUDevice(const OptionFlags& options) { return createCPUDevice(1, options); }

  unsigned getId() const { return id_; }
  const Target& getTarget() const { return target_; }
  bool attach() const;
  bool isAttached() const { return attached_; }
  void detach() const;
  bool supportsRemoteBuffers() const { return true; }
  bool hasGateway() const { return false; }
  std::map<std::string, std::string> getAttributes() const;
  Device createVirtualDevice(unsigned tilesPerIPU);

 private:
  static Device createCPUDevice(unsigned numIPUs, const OptionFlags& options);

  unsigned id_ = 0;
  Target target_;
  mutable bool attached_ = false;
};

}  // namespace poplar

#endif
