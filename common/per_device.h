// What is asked of a device once: programs may have several, and some answers take the driver long.
#pragma once

#include <map>
#include <mutex>

#include "common/rung.h"

namespace ladder {

/// A value for each device.
template <class T>
class PerDevice {
 public:
  /// That of the current device; find(device) gives it the first time.
  template <class F>
  T get(F&& find) {
    int device = 0;
    cuda_check(cudaGetDevice(&device));
    const std::lock_guard lock(mutex_);
    const auto known = values_.find(device);
    return known != values_.end() ? known->second : values_.emplace(device, find(device)).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<int, T> values_;
};

}  // namespace ladder
