// What a rank and its launcher share besides PMIx: the descriptors that the rank inherits (of which one is the record
// of contract/rank_record.h), and the event by which libddl reports the first collective.
#pragma once

namespace ddl::contract {

// The descriptors that a rank inherits from ddlrun besides 0, 1 and 2. The environment names them, too.

/// The job's key, in a job of several hosts (env::kJobKeyFd).
inline constexpr int kJobKeyFd = 3;
/// The rank's agent as a launcher that speaks PMI-1 (env::kPmiFd).
inline constexpr int kPmiFd = 4;
/// Where the rank shows its agent what it does (env::kRankRecord, RankRecord).
inline constexpr int kRankRecordFd = 5;
/// The eventfd that is readable once the agent has written there (env::kRankRecord, LostHost).
inline constexpr int kDoorbellFd = 6;

// What libddl reports to its launcher through PMIx, if the launcher has asked for it.

/// PMIx_Notify_event's status: rank 0 has ended its first collective. In the range that PMIx leaves to others (below
/// PMIX_EXTERNAL_ERR_BASE).
inline constexpr int kFirstCollectiveEvent = -3101;
/// Of an elastic job, and not through PMIx: this rank's work is done (contract/elastic.h).
inline constexpr int kFinishedEvent = -3102;

}  // namespace ddl::contract
