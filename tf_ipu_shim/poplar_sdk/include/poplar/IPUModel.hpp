// Describes an IPU Model by tiles, clock and other figures, and creates devices and targets of it.
#ifndef poplar_IPUModel_hpp
#define poplar_IPUModel_hpp

#include <poplar/Device.hpp>

#include <cstdint>
#include <string>

namespace poplar {

struct IPUModel {
  enum class RelativeSyncDelayType { NO_DELAY, HALF_DELAY };

  // The version is "ipu1", "ipu2" or "ipu21".
  explicit IPUModel(const char* version = "ipu2");

  Device createDevice(OptionFlags options = {}, bool accurateHalf = true, unsigned deviceManagerId = 0) const;
  Target createTarget() const;

  std::string IPUVersion;
  unsigned numIPUs = 1;
  unsigned tilesPerIPU = 1472;
  unsigned tileClockFrequency = 1330000000;
  unsigned numWorkerContexts = 6;
  std::uint64_t bytesPerTile = 624 * 1024;
  unsigned exchangeBytesPerCycle = 4;
  unsigned memcpyBytesPerCycle = 8;
  unsigned minIPUSyncDelay = 120;
  RelativeSyncDelayType relativeSyncDelay = RelativeSyncDelayType::NO_DELAY;
  unsigned globalSyncCycles = 500;
  bool compileIPUCode = false;
};

}  // namespace poplar

#endif
