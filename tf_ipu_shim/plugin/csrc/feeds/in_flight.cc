// Counts the programs that run on each device, and wakes threads that wait for a device to be idle.
#include "feeds/in_flight.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "device/arena.h"
#include "process/interrupts.h"

namespace tf_ipu_shim {
namespace {

struct InFlight {
  std::mutex mutex;
  std::condition_variable idle;
  int programs = 0;
};

InFlight& InFlightOn(int device_ordinal) {
  static auto* devices = new InFlight[kMaxDevices];
  return devices[device_ordinal];
}

}  // namespace

void ProgramStarts(int device_ordinal) {
  InFlight& in_flight = InFlightOn(device_ordinal);
  std::lock_guard<std::mutex> lock(in_flight.mutex);
  ++in_flight.programs;
}

void ProgramEnds(int device_ordinal) {
  InFlight& in_flight = InFlightOn(device_ordinal);
  std::lock_guard<std::mutex> lock(in_flight.mutex);
  if (--in_flight.programs == 0) in_flight.idle.notify_all();
}

bool WaitUntilIdle(int device_ordinal, tensorflow::CancellationManager* cancellation) {
  InFlight& in_flight = InFlightOn(device_ordinal);
  std::unique_lock<std::mutex> lock(in_flight.mutex);
  // The manager cannot wake a waiting thread that is itself being cancelled, and a signal cannot either: both are
  // polled.
  while (!in_flight.idle.wait_for(lock, std::chrono::milliseconds(50), [&] { return in_flight.programs == 0; })) {
    if (Interrupted() || (cancellation != nullptr && cancellation->IsCancelled())) return false;
  }
  return true;
}

}  // namespace tf_ipu_shim
