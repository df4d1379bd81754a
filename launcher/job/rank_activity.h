// What a rank does, as its launcher sees it: libddl shows it in memory that both share (contract/rank_record.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "launcher/job/rank_calls.h"
#include "launcher/process/process_state.h"

namespace ddl::launcher {

/// The last call that a rank has begun in one stream of calls.
struct CallActivity {
  std::string kind;         ///< "allreduce"; "": none yet
  std::int64_t number = 0;  ///< among the calls of the stream, from 1
  bool is_inside = false;   ///< the rank has not returned from it
  Seconds seconds;          ///< since it began, or since the rank has returned from it
  bool operator==(const CallActivity&) const = default;
};

/// A process set that the rank is a member of.
struct SetActivity {
  std::int64_t generation = 0;  ///< the same number on all members, and on no other set's
  std::int64_t id = 0;          ///< as the program knows it; 0: the world
  CallActivity call;            ///< of its ordered calls
  CallActivity named_call;      ///< of the calls for its named tensors
  int peer = -1;                ///< of a transfer: the other rank of the job
  bool has_joined = false;      ///< it is in ddl_join
  bool waits = false;           ///< a thread waits for a named tensor
  bool operator==(const SetActivity&) const = default;
};

/// A named tensor that the rank has submitted and that is not complete.
struct TensorActivity {
  std::int64_t generation = 0;  ///< of its set
  std::string name;             ///< or the beginning of it, and "..."
  std::int64_t digest = 0;      ///< of the whole name
  Seconds seconds;              ///< since it was submitted
  bool operator==(const TensorActivity&) const = default;
};

/// What the kernel knows of a rank's process; nothing that it has to be asked for.
struct ProcessActivity {
  std::string state;                 ///< the letter of /proc/PID/stat: "R", "S", "T"; "": unknown
  std::int64_t num_threads = 0;      ///< 0: unknown
  Seconds cpu_seconds{-1};           ///< with those of the children that it has waited for; below 0: unknown
  std::int64_t resident_bytes = -1;  ///< below 0: unknown
  std::int64_t peak_resident_bytes = -1;
  double cpu_share = -1;  ///< CPUs that it has used since an earlier look; below 0: unknown
  KernelWait wait;
  bool operator==(const ProcessActivity&) const = default;
};

struct RankActivity {
  enum class Phase { kNone, kJoining, kJoined, kLeft };  ///< of libddl: as contract::RankRecord has them

  int rank = 0;
  std::int64_t pid = 0;  ///< of the process that uses libddl, or that was started; 0: it has ended
  Phase phase = Phase::kNone;
  std::int64_t inits = 0;   ///< how often ddl_init has begun, in all programs of the rank
  bool is_stopped = false;  ///< by a signal
  Seconds seconds;          ///< since anything of this has changed, but for is_stopped
  std::vector<SetActivity> sets;
  std::vector<TensorActivity> tensors;  ///< the oldest ones, oldest first
  std::int64_t open_tensors = 0;        ///< the number of all
  Seconds last_event{-1};               ///< since the last event of its ring began or ended; below 0: unknown
  double steps_per_second = -1;         ///< of named tensors; below 0: unknown
  ProcessActivity process;
  RankCalls calls;  ///< only if they were asked for
  bool operator==(const RankActivity&) const = default;
};

}  // namespace ddl::launcher
