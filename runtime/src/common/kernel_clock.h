// The clock that the processes of a host share, in nanoseconds: CLOCK_MONOTONIC.
#pragma once

#include <time.h>

#include <cstdint>

namespace ddl::runtime {

inline std::int64_t read_clock(clockid_t id) {
  timespec time{};
  ::clock_gettime(id, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

inline std::int64_t kernel_now() { return read_clock(CLOCK_MONOTONIC); }
/// That of the kernel's last tick, 1 to 10 ms ago: several times cheaper.
inline std::int64_t kernel_tick() { return read_clock(CLOCK_MONOTONIC_COARSE); }

}  // namespace ddl::runtime
