// What a rank and its launcher share besides PMIx: the descriptors that the rank inherits, the record that it leaves
// when it ends, and the event by which libddl reports the first collective.
#pragma once

#include <cstdint>

namespace ddl::contract {

// The descriptors that a rank inherits from ddlrun besides 0, 1 and 2. The environment names them, too.

/// The job's key, in a job of several hosts (env::kJobKeyFd).
inline constexpr int kJobKeyFd = 3;
/// The rank's agent as a launcher that speaks PMI-1 (env::kPmiFd).
inline constexpr int kPmiFd = 4;
/// Where the rank leaves a record for its agent (env::kExitRecord, ExitRecord).
inline constexpr int kExitRecordFd = 5;

// What a rank leaves behind for its launcher, which reads it when the rank has ended: memory that both share, so it
// is whole however the rank ends, and needs no library, no round trip and no launcher that still answers.

/// env::kExitRecord, "FD:OFFSET", says where it lies in an inherited memfd that is sealed against another size.
/// libddl fills it in when the context was aborted.
struct ExitRecord {
  static constexpr std::uint32_t kMagic = 0x444C'5831;
  static constexpr std::int32_t kNone = -1;

  std::uint32_t magic = kMagic;
  std::int32_t gone_rank = kNone;  ///< the rank that libddl's errors name: it died, left, or gave up first
};
static_assert(sizeof(ExitRecord) == 8);

// What libddl reports to its launcher through PMIx, if the launcher has asked for it.

/// PMIx_Notify_event's status: rank 0 has ended its first collective. In the range that PMIx leaves to others (below
/// PMIX_EXTERNAL_ERR_BASE).
inline constexpr int kFirstCollectiveEvent = -3101;

}  // namespace ddl::contract
