// Enumerates the simulated IPUs: those of the system that TF_IPU_SHIM_SYSTEM names.
#ifndef poplar_DeviceManager_hpp
#define poplar_DeviceManager_hpp

#include <poplar/Device.hpp>

// Programs use it without including it.
#include <optional>
#include <vector>

namespace poplar {

class DeviceManager {
 public:
  static DeviceManager createDeviceManager() { return {}; }

  std::size_t getNumDevices() const;
  std::vector<Device> getDevices(const OptionFlags& options = {}) const;
  // The devices with this number of IPUs: single IPUs first, then neighbouring groups.
  std::vector<Device> getDevices(TargetType type, unsigned requiredIPUs, const OptionFlags& options = {}) const;
  Device getDevice(unsigned id, const OptionFlags& options = {}) const;
  // Attaches to the first free device with this number of IPUs; throws if there is none.
  Device acquireAvailableDevice(unsigned numIPUs = 1, const OptionFlags& options = {}) const;
  Device acquireDeviceById(unsigned id, const OptionFlags& options = {}) const;
};

}  // namespace poplar

#endif
