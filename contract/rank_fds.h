// The descriptors that a rank inherits from ddlrun besides 0, 1 and 2. The environment names them, too.
#pragma once

namespace ddl::contract {

/// The job's key, in a job of several hosts (env::kJobKeyFd).
inline constexpr int kJobKeyFd = 3;
/// The rank's agent as a launcher that speaks PMI-1 (env::kPmiFd).
inline constexpr int kPmiFd = 4;
/// Where the rank leaves word for its agent (env::kExitRecord, contract/exit_record.h).
inline constexpr int kExitRecordFd = 5;

}  // namespace ddl::contract
