// What is kept of a job after its end, or of several: pages are drawn from it, and it is read and written as JSON.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "launcher/job/job_report.h"

namespace ddl::report {

/// A job that has ended, however it ended. Times are in seconds, sizes in bytes.
struct JobRecord {
  std::string version;               ///< of the ddlrun that ran it
  std::string name;                  ///< of --job-name, or of the command
  std::vector<std::string> command;  ///< argv of its ranks
  std::string workdir;
  std::string scheduler_job;       ///< "Slurm job 1234"; "" if no scheduler has given the hosts
  int num_ranks = 0;               ///< that were asked for
  std::vector<std::string> hosts;  ///< of the allocation, in its order
  double began = 0;                ///< seconds since 1970, UTC
  Environment environment;         ///< of ddlrun and its ranks: those variables that may be shown
  std::vector<std::string> said;   ///< what ddlrun said at the end, line by line; empty after a success
  launcher::JobReport report;
};

/// What the runs of a scaling study have in common.
enum class ScalingKind {
  kStrong,  ///< all of them do the same work
  kWeak,    ///< each of their ranks does the same work
};

/// A command that was run with several numbers of ranks.
struct ScalingStudy {
  ScalingKind kind = ScalingKind::kStrong;
  std::vector<JobRecord> runs;  ///< in the order in which they were made, also those that failed
};

/// The variables that a report shows: DDL_*, OMP_*, NCCL_*, UCX_* and FI_*, but none whose name has TOKEN, KEY, SECRET,
/// PASS or CREDENTIAL in it. Pure.
Environment shown_variables(const Environment& all);

/// The record as an object of the schema "ddl.report/1", with a newline at its end. Text that is not UTF-8 has U+FFFD in
/// place of its invalid bytes. Pure.
std::string to_json(const JobRecord& record);
/// Reads it. Unknown fields are skipped, and those that lack have no value. Error: it is not JSON, not of this schema,
/// or a field has another type. What ranks had recorded last is not read: JobRecord::said has it as sentences.
Result<JobRecord> parse_job_record(std::string_view json);

/// The same of the schema "ddl.scaling/1", whose "runs" are objects of "ddl.report/1".
std::string to_json(const ScalingStudy& study);

/// What a file of a report may hold.
using Record = std::variant<JobRecord, ScalingStudy>;
std::string to_json(const Record& record);
/// Reads an object of either schema. Errors: as parse_job_record(); a study has no run.
Result<Record> parse_record(std::string_view json);

/// What ddlrun --json prints at the end of a job: a line of JSON. Pure.
std::string report_json(const launcher::JobReport& report);

}  // namespace ddl::report
