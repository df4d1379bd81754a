// By what a process joins an elastic job again: commands beside those of PMI-1, on the same connection (env::kPmiFd).
// ddlrun answers them if env::kElastic is set. Each generation has a key-value space of its own for put, get and
// barrier_in. If one of its ranks is lost before all have met, barrier_out has rc=-1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddl::contract {

// "cmd=elastic_join reason=2 commits=841" is answered, once a generation with this process has been planned, by
// "cmd=elastic_plan rc=0 generation=3 rank=0 size=7 hosts=(vector,(0,1,4),(1,1,3))". hosts: which rank is on which
// host, as PMI_process_mapping has it.
inline constexpr char kElasticJoin[] = "elastic_join";
inline constexpr char kElasticPlan[] = "elastic_plan";

/// This process's work is done: from now on the job does not change. Answered by kElasticFinishedAck.
inline constexpr char kElasticFinished[] = "elastic_finished";
inline constexpr char kElasticFinishedAck[] = "elastic_finished_ack";

/// Of "cmd=abort exitcode=1": text=, why, as hexadecimal digits of its bytes. Other launchers ignore it.
inline constexpr char kAbortText[] = "text";
inline constexpr std::size_t kMaxAbortText = 400;

/// Why a process joins: reason=. The numbers are those of DDL_ELASTIC_FIRST and so on in ddl.h.
enum class JoinReason : std::int32_t {
  kFirst = 0,    ///< it has not been in the job before
  kChanged = 1,  ///< all ranks have left at the same step, because the job is to change
  kLost = 2,     ///< a rank was lost
};

/// What the job does at the next step at which all ranks ask: RankRecord::pending_change. The numbers are those of
/// DDL_ELASTIC_STAYS and so on in ddl.h.
enum class JobChange : std::uint32_t {
  kNone = 0,
  kMembers = 1,  ///< processes wait to join, or hosts are to leave
  kDrain = 2,    ///< it ends, and another one will go on from its state
};

}  // namespace ddl::contract
