// Draws the stochastic rounding seed of each run of an op, from the seed of its device.
#pragma once

#include <cstdint>

namespace tf_ipu_shim {

// The finaliser of SplitMix64 (public domain): neighbouring seeds and runs produce unrelated values.
inline uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// The rounding seed of one run of an op. It is derived from the device's seed, the op and its number of runs since the
// seed was set, not from the order of ops. If no seed was set, it comes from the operating system.
//   op: a number for the op's name
//   every_chip: whether ops of the same name on other chips get the same seed, as when replicas must draw alike
uint64_t DrawRoundingSeed(int device_ordinal, int chip, uint64_t op, bool every_chip);

}  // namespace tf_ipu_shim
