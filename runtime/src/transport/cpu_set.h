// The CPUs that a process may run on, small enough to be sent.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ddl::runtime {

/// One bit per CPU of the kernel's numbering. Plain data.
struct CpuSet {
  static constexpr std::size_t kMaxCpus = 8192;
  std::array<std::uint64_t, kMaxCpus / 64> bits{};

  /// The calling thread's; CPU 0 alone if the kernel does not say.
  static CpuSet of_this_thread();

  CpuSet& operator|=(const CpuSet& other) {
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] |= other.bits[i];
    return *this;
  }
  int count() const {
    int total = 0;
    for (const std::uint64_t word : bits) total += std::popcount(word);
    return total;
  }
};

}  // namespace ddl::runtime
