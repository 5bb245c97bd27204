// Describes the IPU system that a graph is built for: IPUs, tiles, memory, workers and clock.
#ifndef poplar_Target_hpp
#define poplar_Target_hpp

#include <poplar/OptionFlags.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/TargetType.hpp>
#include <poplar/Type.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace poplar {

namespace detail {
struct TargetFigures {
  TargetType type = TargetType::IPU;
  std::string arch = "ipu2", system;
  unsigned ipus = 1;
  unsigned tiles_per_ipu = 1472;
  std::uint64_t bytes_per_tile = 624 * 1024;
  unsigned workers = 6;
  double clock_frequency = 1.33e9;
  unsigned exchange_bytes_per_cycle = 4;
  unsigned units_half = 16, units_half_float = 8, units_float = 16;  // of matrix multiplications
  OptionFlags options;
};
}  // namespace detail

class Target {
 public:
  Target() = default;
  explicit Target(detail::TargetFigures figures) : figures_(std::move(figures)) {}
  const detail::TargetFigures& figures() const { return figures_; }

  static Target createIPUTarget(unsigned numIPUs, StringRef systemType, const OptionFlags& options = {});
  static Target createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType,
                                const OptionFlags& options = {});
  static Target createCPUTarget(bool accurateHalf = true, unsigned numThreads = 1);

  TargetType getTargetType() const { return figures_.type; }
  StringRef getTargetArchString() const { return figures_.arch; }
  StringRef getTargetSystemString() const { return figures_.system; }
  const OptionFlags& getTargetOptions() const { return figures_.options; }
  unsigned getNumIPUs() const { return figures_.ipus; }
  unsigned getNumTiles() const { return figures_.ipus * figures_.tiles_per_ipu; }
  unsigned getTilesPerIPU() const { return figures_.tiles_per_ipu; }
  unsigned getNumWorkerContexts() const { return figures_.workers; }
  unsigned getBytesPerTile() const { return static_cast<unsigned>(figures_.bytes_per_tile); }
  std::uint64_t getMemoryBytes() const { return figures_.bytes_per_tile * getNumTiles(); }
  double getTileClockFrequency() const { return figures_.clock_frequency; }
  std::size_t getTypeSize(const Type& type) const { return detail::typeSize(type); }

  unsigned getDataPathWidth() const { return 64; }
  unsigned getVectorWidth(const Type& type) const { return static_cast<unsigned>(8 / detail::typeSize(type)); }
  unsigned getFloatVectorWidth() const { return 2; }
  unsigned getHalfVectorWidth() const { return 4; }
  unsigned getExchangeBytesPerCycle() const { return figures_.exchange_bytes_per_cycle; }
  unsigned getMemcpyBytesPerCycle() const { return 8; }
  unsigned getAtomicStoreGranularity() const { return 4; }
  unsigned getMinIPUSyncDelay() const { return 120; }
  unsigned getMaxIPUSyncDelay() const { return 120; }
  double getGlobalSyncCycles() const { return 500; }
  unsigned getGlobalExchangePacketBytes() const { return 512; }
  bool supportsExchangeBusSharing() const { return true; }
  unsigned getTilesPerSharedExchangeBus() const { return 2; }
  unsigned getNumStrideBits() const { return 10; }
  unsigned getRptCountMax() const { return 0xFFF; }
  unsigned getInterleavedMemoryElementIndex() const { return 16; }
  std::vector<std::size_t> getMemoryElementOffsets() const;

  unsigned getWeightsPerConvUnit(bool floatActivations) const { return floatActivations ? 8 : 16; }
  unsigned getWeightsPerConvUnit(const Type& type) const { return type == FLOAT ? 8 : 16; }
  unsigned getConvUnitInputLoadElemsPerCycle(bool floatActivations) const { return floatActivations ? 2 : 4; }
  unsigned getConvUnitInputLoadElemsPerCycle(const Type& type) const { return type == FLOAT ? 2 : 4; }
  unsigned getConvUnitCoeffLoadBytesPerCycle() const { return 16; }
  unsigned getConvUnitMaxPipelineDepth(const Type&) const { return 4; }
  unsigned getNumConvUnits(const Type& input, const Type& partials) const {
    if (input == FLOAT) return figures_.units_float;
    return partials == FLOAT ? figures_.units_half_float : figures_.units_half;
  }
  unsigned getFp16InFp16OutConvUnitsPerTile() const { return figures_.units_half; }
  unsigned getFp16InFp32OutConvUnitsPerTile() const { return figures_.units_half_float; }
  unsigned getFp32InFp32OutConvUnitsPerTile() const { return figures_.units_float; }

  // A target with some of this one's tiles or IPUs.
  Target createVirtualTarget(unsigned numIPUs, unsigned tilesPerIPU) const;

  bool operator==(const Target& other) const;
  bool operator!=(const Target& other) const { return !(*this == other); }
  bool operator<(const Target& other) const;
  std::size_t hash() const;

 private:
  detail::TargetFigures figures_;
};

void copyDeviceHalfToFloat(const Target& target, const void* source, float* destination, std::size_t count);
void copyFloatToDeviceHalf(const Target& target, const float* source, void* destination, std::size_t count);
void copyDeviceHalfToDouble(const Target& target, const void* source, double* destination, std::size_t count);
void copyDoubleToDeviceHalf(const Target& target, const double* source, void* destination, std::size_t count);

}  // namespace poplar

template <>
struct std::hash<poplar::Target> {
  std::size_t operator()(const poplar::Target& target) const { return target.hash(); }
};

#endif
