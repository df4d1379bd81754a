// Memory of GPUs that libddl has allocated for the program: results whose size was not known before.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "base/error.h"
#include "runtime/src/device/device.h"

namespace ddl::runtime {

/// Thread-safe.
class DeviceAllocations {
 public:
  DeviceAllocations() = default;
  /// Frees what has not been freed.
  ~DeviceAllocations() {
    while (!taken_.empty()) free(taken_.begin()->first);
  }
  DeviceAllocations(const DeviceAllocations&) = delete;
  DeviceAllocations& operator=(const DeviceAllocations&) = delete;

  Result<void*> allocate(Device& device, std::size_t bytes) {
    const CurrentDevice current(device);
    DDL_TRY(current.status());
    auto memory = device.allocate(bytes);
    if (!memory) return memory;
    const std::lock_guard lock(mutex_);
    taken_[*memory] = &device;
    return memory;
  }
  /// False: the memory is not from here.
  bool free(void* memory) {
    Device* device = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto found = taken_.find(memory);
      if (found == taken_.end()) return false;
      device = found->second;
      taken_.erase(found);
    }
    const CurrentDevice current(*device);
    device->release(memory);
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<void*, Device*> taken_;  ///< what has not been freed; guarded by mutex_
};

}  // namespace ddl::runtime
