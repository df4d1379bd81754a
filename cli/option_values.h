// The values of options: text in, a number or a sentence out.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "launcher/job/allocation.h"
#include "launcher/job/job_spec.h"

namespace ddl::cli {

/// About three years; more is taken for a slip of the hand.
inline constexpr double kMaxSeconds = 1e8;

/// As messages show what was given: 'text'.
std::string in_quotes(std::string_view text);

/// A whole number from 1 to launcher::kMaxRanks.
Result<int> parse_rank_count(std::string_view text);
/// A finite number of seconds up to kMaxSeconds; zero only if zero_is_meant.
Result<double> parse_seconds(std::string_view text, bool zero_is_meant);
Result<launcher::StdinTarget> parse_stdin_target(std::string_view text);
/// NAME or NAME=VALUE. Names are letters, digits and _; those that ddlrun itself sets for every rank are refused.
Result<launcher::EnvironmentExport> parse_export(std::string_view text);
/// "ddl" or "mpi", as the variable by which libddl is told.
Result<launcher::EnvironmentExport> parse_cpu_operations(std::string_view text);
Result<std::string> not_empty(const std::string& text);
/// An absolute path, meant from current_directory. An empty one is refused.
Result<std::string> parse_directory(std::string_view text, std::string_view current_directory);

}  // namespace ddl::cli
