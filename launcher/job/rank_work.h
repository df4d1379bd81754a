// What a rank does now, in few words, from all that it shows of itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "launcher/job/rank_activity.h"

namespace ddl::launcher {

/// The kind of a call of two ranks; all other calls are of all members of a set.
inline constexpr std::string_view kTransferCall = "transfer";

struct CurrentWork {
  enum class Kind {
    kNone,       ///< it has not called ddl_init, or does not use libddl
    kInit,       ///< it is in ddl_init
    kCall,       ///< it is in a call of a process set
    kJoin,       ///< it is in ddl_join
    kTensor,     ///< a thread of it waits for a named tensor
    kUserCode,   ///< none of these
    kFinalized,  ///< it has called ddl_finalize
  };
  Kind kind = Kind::kNone;
  std::string call;         ///< the call that it is in, or that it has left last: "allreduce"; "": none
  std::int64_t number = 0;  ///< of the call in its process set, from 1
  std::int64_t set =
      0;  ///< of kJoin, the tensor and the call: the process set, as the program knows it; 0: the world
  std::int64_t peer = -1;  ///< of a transfer: the other rank of the job
  std::string tensor;      ///< of kTensor: its name
  Seconds seconds;         ///< it has done this for so long
  bool operator==(const CurrentWork&) const = default;
};

/// A rank that is in several of these is in the first of kCall, kJoin, kTensor. Pure.
CurrentWork current_work(const RankActivity& rank);

/// " of process set 2"; "" for the world. Pure.
std::string set_suffix(std::int64_t set);
/// "allreduce #812 of process set 2", "a transfer with rank 3": a call of this set. Pure.
std::string call_text(const CallActivity& call, const SetActivity& set);
/// "allreduce #812", "waits for tensor "x"", "user code after allreduce #811"; "" for kNone. Pure.
std::string work_text(const CurrentWork& work);

/// "uses 98 % of a CPU", "waits in the system call futex (futex_wait_queue)": what the kernel knows; "": nothing. Pure.
std::string process_text(const ProcessActivity& process);

}  // namespace ddl::launcher
