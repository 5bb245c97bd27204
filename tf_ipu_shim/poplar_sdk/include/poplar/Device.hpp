// Devices that run programs.
#ifndef poplar_Device_hpp
#define poplar_Device_hpp

#include <poplar/OptionFlags.hpp>
#include <poplar/Target.hpp>

#include <map>
#include <string>
#include <type_traits>
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

  static Device createCPUDevice(const OptionFlags& options = {}) { return createCPUDevice(1, options); }
  // A template: the argument {} means empty options.
  template <class Number, std::enable_if_t<std::is_integral_v<Number>, int> = 0>
  static Device createCPUDevice(Number numIPUs) {
    return createCPUDevice(static_cast<unsigned>(numIPUs), {});
  }

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
