// Targets, devices and the modelled IPU.
#include <poplar/Device.hpp>
#include <poplar/DeviceManager.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/exceptions.hpp>

#include <tuple>

namespace poplar {

namespace {

// Figures of the IPU generations.
detail::TargetFigures figuresOf(const std::string& version) {
  detail::TargetFigures figures;
  if (version == "ipu1") {
    figures.tiles_per_ipu = 1216;
    figures.bytes_per_tile = 256 * 1024;
    figures.clock_frequency = 1.6e9;
  } else if (version == "ipu21") {
    figures.clock_frequency = 1.85e9;
  } else if (version != "ipu2") {
    throw invalid_machine_model("IPUModel: the version is '" + version +
                                "'; expected ipu1, ipu2 or ipu21. Pass one of these.");
  }
  figures.arch = version;
  return figures;
}

auto key(const detail::TargetFigures& figures) {
  return std::tie(figures.type, figures.arch, figures.system, figures.ipus, figures.tiles_per_ipu,
                  figures.bytes_per_tile, figures.workers);
}

constexpr unsigned ipus_of_system = 16;

}  // namespace

Target Target::createIPUTarget(unsigned numIPUs, StringRef systemType, const OptionFlags& options) {
  return createIPUTarget(numIPUs, 0, systemType, options);
}

Target Target::createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType,
                               const OptionFlags& options) {
  const bool is_version = systemType == "ipu1" || systemType == "ipu2" || systemType == "ipu21";
  auto figures = figuresOf(is_version ? systemType.str() : "ipu2");
  figures.system = systemType.str();
  figures.ipus = numIPUs;
  figures.options = options;
  if (tilesPerIPU) figures.tiles_per_ipu = tilesPerIPU;
  return Target(figures);
}

Target Target::createCPUTarget(bool, unsigned) {
  detail::TargetFigures figures;
  figures.type = TargetType::CPU;
  figures.arch = "cpu";
  figures.tiles_per_ipu = 1;
  figures.bytes_per_tile = std::uint64_t{1} << 31;
  figures.workers = 1;
  return Target(figures);
}

std::vector<std::size_t> Target::getMemoryElementOffsets() const {
  std::vector<std::size_t> offsets;
  constexpr std::size_t element = 16 * 1024;
  for (std::size_t offset = 0; offset < figures_.bytes_per_tile; offset += element) offsets.push_back(offset);
  return offsets;
}

Target Target::createVirtualTarget(unsigned numIPUs, unsigned tilesPerIPU) const {
  auto figures = figures_;
  figures.ipus = numIPUs;
  figures.tiles_per_ipu = tilesPerIPU;
  return Target(figures);
}

bool Target::operator==(const Target& other) const { return key(figures_) == key(other.figures_); }
bool Target::operator<(const Target& other) const { return key(figures_) < key(other.figures_); }
std::size_t Target::hash() const {
  return std::hash<std::string>()(figures_.arch + figures_.system) * 31 + figures_.ipus * 4099 + figures_.tiles_per_ipu;
}

Device Device::createCPUDevice(const OptionFlags&) { return Device(0, Target::createCPUTarget(), {0}); }

bool Device::attach() const { return attached_ = true; }
void Device::detach() const { attached_ = false; }

std::map<std::string, std::string> Device::getAttributes() const {
  return {{"number of ipus", std::to_string(target_.getNumIPUs())}, {"ipu architecture", target_.getTargetArchString()}};
}

Device Device::createVirtualDevice(unsigned tilesPerIPU) {
  Device device(id_, target_.createVirtualTarget(target_.getNumIPUs(), tilesPerIPU), driver_ids_);
  device.attached_ = attached_;
  return device;
}

std::size_t DeviceManager::getNumDevices() const { return getDevices().size(); }

std::vector<Device> DeviceManager::getDevices(const OptionFlags& options) const {
  std::vector<Device> devices;
  unsigned id = 0;
  for (unsigned size = 1; size <= ipus_of_system; size *= 2) {
    for (unsigned first = 0; first < ipus_of_system; first += size) {
      std::vector<unsigned> members;
      for (unsigned ipu = first; ipu < first + size; ++ipu) members.push_back(ipu);
      devices.emplace_back(id++, Target::createIPUTarget(size, "ipu2", options), members);
    }
  }
  return devices;
}

std::vector<Device> DeviceManager::getDevices(TargetType type, unsigned requiredIPUs, const OptionFlags& options) const {
  std::vector<Device> found;
  if (type == TargetType::CPU) found.push_back(Device::createCPUDevice(options));
  if (type == TargetType::IPU_MODEL) {
    IPUModel model;
    model.numIPUs = requiredIPUs;
    found.push_back(model.createDevice(options));
  }
  if (type != TargetType::IPU) return found;
  for (auto& device : getDevices(options))
    if (device.getTarget().getNumIPUs() == requiredIPUs) found.push_back(std::move(device));
  return found;
}

Device DeviceManager::getDevice(unsigned id, const OptionFlags& options) const {
  for (auto& device : getDevices(options))
    if (device.getId() == id) return std::move(device);
  throw poplar_error("DeviceManager::getDevice: there is no device " + std::to_string(id) + ". Pass an id below " +
                     std::to_string(getNumDevices()) + ".");
}

Device DeviceManager::acquireAvailableDevice(unsigned numIPUs, const OptionFlags& options) const {
  for (auto& device : getDevices(TargetType::IPU, numIPUs, options))
    if (device.attach()) return std::move(device);
  throw poplar_error("DeviceManager::acquireAvailableDevice: no device has " + std::to_string(numIPUs) +
                     " IPUs. Pass a power of 2 up to " + std::to_string(ipus_of_system) + ".");
}

Device DeviceManager::acquireDeviceById(unsigned id, const OptionFlags& options) const {
  Device device = getDevice(id, options);
  device.attach();
  return device;
}

IPUModel::IPUModel(const char* version) : IPUVersion(version) {
  const auto figures = figuresOf(IPUVersion);
  tilesPerIPU = figures.tiles_per_ipu;
  bytesPerTile = figures.bytes_per_tile;
  tileClockFrequency = static_cast<unsigned>(figures.clock_frequency);
}

Target IPUModel::createTarget() const {
  auto figures = figuresOf(IPUVersion);
  figures.type = TargetType::IPU_MODEL;
  figures.ipus = numIPUs;
  figures.tiles_per_ipu = tilesPerIPU;
  figures.bytes_per_tile = bytesPerTile;
  figures.workers = numWorkerContexts;
  figures.clock_frequency = tileClockFrequency;
  return Target(figures);
}

Device IPUModel::createDevice(OptionFlags, bool, unsigned deviceManagerId) const {
  std::vector<unsigned> members;
  for (unsigned ipu = 0; ipu < numIPUs; ++ipu) members.push_back(ipu);
  Device device(deviceManagerId, createTarget(), members);
  device.attach();
  return device;
}

}  // namespace poplar
