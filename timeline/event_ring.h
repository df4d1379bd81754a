// Rings of events (contract/event_ring.h) from the view of who makes them and of who reads them: the agent under
// ddlrun, elsewhere a rank. The process that writes the events may do so meanwhile, may have died at any instruction,
// and may have written anything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "contract/event_ring.h"

namespace ddl::timeline {

/// What a ring held at one moment.
struct RingSnapshot {
  std::vector<contract::Event> events;  ///< in the order in which they began; every number once
  std::uint64_t count = 0;              ///< of events ever; the first ones may be lost
  std::uint64_t steps = 0;
  std::int32_t clock_peer = -1;                ///< the rank of the job whose clock was compared; -1: none
  std::vector<contract::ClockSample> samples;  ///< in the order of at, each at another moment
  bool operator==(const RingSnapshot&) const = default;
};

/// The greatest power of two that is not above n, at most EventRing::kMaxCapacity; at least 1.
std::uint32_t ring_capacity(std::uint64_t n);

/// The latest events of each of so many ranks that fill a file of this size: a power of two, at most kMaxCapacity and at
/// least kUsuallyKept.
std::uint32_t events_of_rank(std::uint64_t file_bytes, std::size_t ranks);

/// Makes an empty ring of memory of zeros, of at least EventRing::bytes_for(capacity) bytes at an address that is a
/// multiple of 64. capacity: a power of two. kept: see EventRing.
contract::EventRing& make_ring(std::span<std::byte> memory, std::uint32_t capacity, std::uint32_t kept);

/// The ring in this memory, or null if it does not hold one.
const contract::EventRing* find_ring(std::span<const std::byte> memory);

/// Copies the latest events, at most this number. memory: as for find_ring(), from which ring is. Events that are being
/// written, or are not of a known kind, are omitted. A name is made to end with zeros.
RingSnapshot read_ring(const contract::EventRing& ring, std::span<const std::byte> memory,
                       std::size_t latest);

}  // namespace ddl::timeline
