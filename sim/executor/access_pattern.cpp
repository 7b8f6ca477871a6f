#include "executor/access_pattern.h"

#include <algorithm>

namespace sim {

void Pattern::learn(Mask lanes_now, const Addresses& address, uint32_t bytes_per_lane) {
  const uint64_t origin = address[first(lanes_now)];
  low = high = 0;
  bits = 0;
  uint64_t from_consecutive = 0;
  for (int l = 0; l < warp_size; ++l) {
    const int64_t distance = lanes_now >> l & 1 ? int64_t(address[l] - origin) : 0;
    relative[l] = distance;
    low = std::min(low, distance);
    high = std::max(high, distance);
    bits |= uint64_t(distance);
    from_consecutive |= uint64_t(distance - int64_t{bytes_per_lane} * l);
  }
  mask = lanes_now;
  form = mask != all_lanes       ? Form::general
         : bits == 0             ? Form::uniform
         : from_consecutive == 0 ? Form::consecutive
                                 : Form::general;
  regular = mask == all_lanes;
  for (int l = 1; l < warp_size; ++l) regular = regular && relative[l] - relative[l - 1] == relative[1];
  low = low < -far || high > far ? -far : low;
  high = std::min(high, far);
  sectors.fill(0);
  ideal = 0;
}

uint8_t Pattern::count_sectors(int64_t first) const {
  std::array<int64_t, warp_size> sector;
  int n = 0;
  for (int l = 0; l < warp_size; ++l)
    if (mask >> l & 1) sector[n++] = (relative[l] + first) >> 5;
  if (!std::is_sorted(sector.begin(), sector.begin() + n)) std::sort(sector.begin(), sector.begin() + n);
  return uint8_t(std::unique(sector.begin(), sector.begin() + n) - sector.begin());
}

}  // namespace sim
