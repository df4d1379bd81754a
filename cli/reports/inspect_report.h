// What --inspect prints: the ranks of a running job, or the jobs from which to choose one, as text and as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/reports/console.h"
#include "launcher/job/job_inspection.h"

namespace ddl::cli {

/// The job, a table with a line for each rank, the waits of ranks for others, and the nodes that have not answered. A
/// column in which no rank has a value is omitted. style: of standard output. Pure, but for the time zone of job.began.
std::string inspection_text(const launcher::JobInspection& job, const TerminalStyle& style);

/// One line of JSON, with its newline; docs/reference/inspect.md has the schema. Pure.
std::string inspection_json(const launcher::JobInspection& job);

/// A job of this host, or why it did not say what it is.
struct FoundJob {
  std::int64_t pid = 0;  ///< of its ddlrun
  std::string id;
  Result<launcher::JobDescription> description;
};

/// A table with a line for each. Pure, but for the time zone.
std::string jobs_text(const std::vector<FoundJob>& jobs);
/// One line of JSON, with its newline. Pure.
std::string jobs_json(const std::vector<FoundJob>& jobs);

/// The first lines of a text, each without what is beyond this number of columns, for a terminal of this size. Pure.
std::string fitted(std::string_view text, std::size_t columns, std::size_t lines);

}  // namespace ddl::cli
