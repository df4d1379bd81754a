// Whether all ranks of all hosts have made the same call, and the position of this result in a staging slot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/src/common/call.h"
#include "runtime/src/common/member.h"
#include "runtime/src/shm/channel.h"
#include "runtime/src/shm/segment.h"

namespace ddl::runtime {

// Calls are compared along the canonical tree, so that every rank finds the same pair and reports the same message.

/// A rank and its call. Plain data between hosts.
struct CallStamp {
  std::int32_t rank = 0;
  std::uint32_t reserved = 0;
  HostField host;
  Call call;
};

struct CallAgreement {
  CallStamp first;       ///< the first rank's, with which all others are compared
  CallStamp mismatched;  ///< the first rank with another call
  std::uint32_t has_mismatch = 0;
  std::uint32_t reserved = 0;

  /// Of one host, after an exchange of its channel.
  static CallAgreement of_host(const Channel& channel);
  /// Of neighbouring hosts: left holds the lower ones.
  static CallAgreement merge(const CallAgreement& left, const CallAgreement& right);
  /// Ok, or the mismatch.
  Outcome outcome() const;
};

// How a staging slot is used when a job has several hosts.
//
//   input       this rank's input
//   result      the slice of the result that this rank has received from the other hosts
//   agreement   whether all ranks made the same call

struct SlotAreas {
  static constexpr std::size_t kAgreementBytes =
      (sizeof(CallAgreement) + kLineBytes - 1) / kLineBytes * kLineBytes;

  std::size_t area_bytes = 0;  ///< of input, and of result; a multiple of kLineBytes

  /// staging_bytes is a multiple of kLineBytes. An area has space for a cache line per rank, and for an element of
  /// every rank for each rank of the largest host.
  static SlotAreas of(std::size_t staging_bytes, int ranks, int max_local_size) {
    const std::size_t line = std::max(kLineBytes, max_local_size * sizeof(std::uint64_t));
    const std::size_t min_bytes = ranks * line;
    return {std::max(staging_bytes, (min_bytes + kLineBytes - 1) / kLineBytes * kLineBytes)};
  }
  /// The areas of a slot that was made with slot_bytes().
  static SlotAreas in_slot(std::size_t slot_bytes) { return {(slot_bytes - kAgreementBytes) / 2}; }
  std::size_t slot_bytes() const { return 2 * area_bytes + kAgreementBytes; }
  std::byte* input(std::byte* slot) const { return slot; }
  const std::byte* input(const std::byte* slot) const { return slot; }
  std::byte* result(std::byte* slot) const { return slot + area_bytes; }
  const std::byte* result(const std::byte* slot) const { return slot + area_bytes; }
  std::byte* agreement(std::byte* slot) const { return slot + 2 * area_bytes; }
  const std::byte* agreement(const std::byte* slot) const { return slot + 2 * area_bytes; }
};

}  // namespace ddl::runtime
