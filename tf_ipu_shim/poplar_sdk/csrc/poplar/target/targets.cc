// Creates targets and devices: those of the simulated system, the CPU's and the IPU Model's.
#include "poplar/target/option_tables.hpp"

#include <poplar/Device.hpp>
#include <poplar/DeviceManager.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/exceptions.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <tuple>

namespace poplar {

namespace {

// Chips by the versions of IPUModel, and Bow, which shares one.
struct Chip {
  const char* name;
  const char* version;
  unsigned tiles;
  unsigned bytes_per_tile;
  double clock_frequency;
  unsigned units_half, units_half_float, units_float;  // of matrix multiplications
};
constexpr Chip gc2{"gc2", "ipu1", 1216, 256 * 1024, 1.6e9, 8, 8, 8};
constexpr Chip gc200{"gc200", "ipu2", 1472, 624 * 1024, 1.33e9, 16, 8, 16};
constexpr Chip bow{"bow", "ipu2", 1472, 624 * 1024, 1.85e9, 16, 8, 16};
constexpr Chip c600{"c600", "ipu21", 1472, 624 * 1024, 1.486e9, 16, 8, 16};

// The systems that can be simulated, as the Python package has them.
struct System {
  std::string_view name;
  unsigned ipus;
  const Chip& chip;
};
constexpr System systems[] = {
    {"ipu16", 16, gc200},     {"dss8440", 16, gc2},     {"m2000", 4, gc200},      {"bow-2000", 4, bow},
    {"pod4", 4, gc200},       {"bow-pod4", 4, bow},     {"pod8", 8, gc200},       {"bow-pod8", 8, bow},
    {"pod16", 16, gc200},     {"bow-pod16", 16, bow},   {"pod32", 32, gc200},     {"bow-pod32", 32, bow},
    {"pod64", 64, gc200},     {"bow-pod64", 64, bow},   {"pod128", 128, gc200},   {"bow-pod128", 128, bow},
    {"pod256", 256, gc200},   {"bow-pod256", 256, bow}, {"c600", 1, c600},        {"c600x2", 2, c600},
    {"c600x4", 4, c600},      {"c600x8", 8, c600},
};

// The system that TF_IPU_SHIM_SYSTEM names.
const System& currentSystem() {
  const char* set = std::getenv("TF_IPU_SHIM_SYSTEM");
  const std::string_view name = set && *set ? set : "ipu16";
  for (const System& system : systems)
    if (system.name == name) return system;
  throw poplar_error("TF_IPU_SHIM_SYSTEM is '" + std::string(name) +
                     "', which is not a system. Run `tf-ipu info` to list the systems.");
}

detail::TargetFigures figuresOf(const Chip& chip) {
  detail::TargetFigures figures;
  figures.arch = chip.version;
  figures.tiles_per_ipu = chip.tiles;
  figures.bytes_per_tile = chip.bytes_per_tile;
  figures.clock_frequency = chip.clock_frequency;
  figures.units_half = chip.units_half;
  figures.units_half_float = chip.units_half_float;
  figures.units_float = chip.units_float;
  return figures;
}

detail::TargetFigures figuresOf(const std::string& version) {
  for (const Chip* chip : {&gc2, &gc200, &c600})
    if (version == chip->version) return figuresOf(*chip);
  throw invalid_machine_model("The IPU version is '" + version +
                              "'; expected ipu1, ipu2 or ipu21. Pass one of these.");
}

// More than any system has; numbers of tiles stay far from those that overflow.
constexpr std::uint64_t most_tiles = 1 << 24;

Target checked(const char* function, const detail::TargetFigures& figures) {
  const auto tiles = std::uint64_t{figures.ipus} * figures.tiles_per_ipu;
  if (tiles > 0 && tiles <= most_tiles) return Target(figures);
  throw invalid_machine_model(std::string(function) + ": " + std::to_string(figures.ipus) + " IPUs with " +
                              std::to_string(figures.tiles_per_ipu) + " tiles each were asked for; expected 1 to " +
                              std::to_string(most_tiles) + " tiles in all. Pass such numbers.");
}

auto key(const detail::TargetFigures& figures) {
  return std::tie(figures.type, figures.arch, figures.system, figures.ipus, figures.tiles_per_ipu,
                  figures.bytes_per_tile, figures.workers);
}

}  // namespace

Target Target::createIPUTarget(unsigned numIPUs, StringRef systemType, const OptionFlags& options) {
  return createIPUTarget(numIPUs, 0, systemType, options);
}

Target Target::createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType,
                               const OptionFlags& options) {
  detail::checkOptions("Target::createIPUTarget", options, detail::target_options);
  const bool is_version = systemType == "ipu1" || systemType == "ipu2" || systemType == "ipu21";
  auto figures = figuresOf(is_version ? systemType.str() : "ipu2");
  figures.system = systemType.str();
  figures.ipus = numIPUs;
  figures.options = options;
  if (tilesPerIPU) figures.tiles_per_ipu = tilesPerIPU;
  return checked("Target::createIPUTarget", figures);
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
  return checked("Target::createVirtualTarget", figures);
}

bool Target::operator==(const Target& other) const { return key(figures_) == key(other.figures_); }
bool Target::operator<(const Target& other) const { return key(figures_) < key(other.figures_); }
std::size_t Target::hash() const {
  return std::hash<std::string>()(figures_.arch + figures_.system) * 31 + figures_.ipus * 4099 + figures_.tiles_per_ipu;
}

Device Device::createCPUDevice(unsigned numIPUs, const OptionFlags& options) {
  detail::checkOptions("Device::createCPUDevice", options, detail::target_options);
  if (numIPUs == 0) throw poplar_error("Device::createCPUDevice: the number of IPUs is 0; expected 1 or more.");
  return Device(0, Target::createCPUTarget().createVirtualTarget(numIPUs, 1));
}

bool Device::attach() const { return attached_ = true; }
void Device::detach() const { attached_ = false; }

std::map<std::string, std::string> Device::getAttributes() const {
  return {{"number of ipus", std::to_string(target_.getNumIPUs())}, {"ipu architecture", target_.getTargetArchString()}};
}

Device Device::createVirtualDevice(unsigned tilesPerIPU) {
  Device device(id_, target_.createVirtualTarget(target_.getNumIPUs(), tilesPerIPU));
  device.attached_ = attached_;
  return device;
}

std::size_t DeviceManager::getNumDevices() const { return getDevices().size(); }

std::vector<Device> DeviceManager::getDevices(const OptionFlags& options) const {
  detail::checkOptions("DeviceManager", options, detail::target_options);
  const System& system = currentSystem();
  std::vector<Device> devices;
  unsigned id = 0;
  for (unsigned size = 1; size <= system.ipus; size *= 2) {
    auto figures = figuresOf(system.chip);
    figures.ipus = size;
    figures.system = system.chip.version;
    figures.options = options;
    for (unsigned first = 0; first < system.ipus; first += size) devices.emplace_back(id++, Target(figures));
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
                     " IPUs. Pass a power of 2 up to " + std::to_string(currentSystem().ipus) + ".");
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
  figures.exchange_bytes_per_cycle = exchangeBytesPerCycle;
  figures.clock_frequency = tileClockFrequency;
  return checked("IPUModel", figures);
}

Device IPUModel::createDevice(OptionFlags options, bool, unsigned deviceManagerId) const {
  detail::checkOptions("IPUModel::createDevice", options, detail::target_options);
  Device device(deviceManagerId, createTarget());
  device.attach();
  return device;
}

}  // namespace poplar
