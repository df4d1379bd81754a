#include "cli/option_values.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "contract/cpu_operations.h"
#include "contract/environment.h"

namespace ddl::cli {

namespace {

namespace env = contract::env;
using launcher::kMaxRanks;

// Each rank gets its own of these: one value for all would make them all the same rank.
constexpr std::string_view kSetByDdlrun[] = {
    env::kRank,           env::kSize,           env::kLocalRank,  env::kLocalSize,
    env::kCrossRank,      env::kCrossSize,      env::kHostname,   env::kTorchRank,
    env::kTorchWorldSize, env::kTorchLocalRank, env::kMasterAddr, env::kTorchLocalWorldSize,
    env::kMasterPort,     env::kPmixNamespace,  env::kPmixRank,
};

bool is_name_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool is_name(std::string_view text) {
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

}  // namespace

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

Result<std::string> not_empty(const std::string& text) {
  if (text.empty()) return refuse("its value is empty");
  return text;
}

Result<int> parse_rank_count(std::string_view text) {
  const auto digits = text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
  const bool whole = !digits.empty() &&
                     std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!whole) return refuse(in_quotes(text) + " is not a whole number of ranks");
  // Too long for an integer is too many, too.
  const auto number = parse_integer(text);
  if (text.starts_with('-') || number == 0)
    return refuse(in_quotes(text) + " is too few ranks; 1 is the least");
  if (!number || *number > kMaxRanks) {
    return refuse(in_quotes(text) + " is too many ranks; " + std::to_string(kMaxRanks) + " is the most");
  }
  return static_cast<int>(*number);
}

Result<double> parse_seconds(std::string_view text, bool zero_is_meant) {
  const auto number = parse_number(text);
  if (!number) return refuse(in_quotes(text) + " is not a number of seconds, such as 90 or 0.5");
  if (*number < 0) return refuse(in_quotes(text) + " seconds is negative");
  if (*number == 0 && !zero_is_meant)
    return refuse(in_quotes(text) + " seconds leaves no time; omit it for no limit");
  if (*number > kMaxSeconds) return refuse(in_quotes(text) + " seconds is more than three years");
  return *number;
}

Result<launcher::StdinTarget> parse_stdin_target(std::string_view text) {
  if (text == "0") return launcher::StdinTarget::kRank0;
  if (text == "all") return launcher::StdinTarget::kAll;
  if (text == "none") return launcher::StdinTarget::kNone;
  return refuse(in_quotes(text) + " is none of 0 (rank 0), all, none");
}

Result<launcher::EnvironmentExport> parse_export(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (!is_name(name)) {
    if (name.find(',') != std::string_view::npos) {
      return refuse(in_quotes(text) + " looks like several; repeat -x for each variable");
    }
    return refuse(in_quotes(name) + " is not the name of an environment variable (letters, digits and _)");
  }
  if (std::find(std::begin(kSetByDdlrun), std::end(kSetByDdlrun), name) != std::end(kSetByDdlrun)) {
    return refuse(std::string(name) + " is set by ddlrun itself, for every rank");
  }
  launcher::EnvironmentExport result{std::string(name), std::nullopt};
  if (equals != std::string_view::npos) result.value = std::string(text.substr(equals + 1));
  return result;
}

Result<launcher::EnvironmentExport> parse_cpu_operations(std::string_view text) {
  if (!contract::parse_cpu_operations(text)) {
    return refuse(in_quotes(text) + " is neither ddl (libddl itself) nor mpi (the site's MPI)");
  }
  return launcher::EnvironmentExport{contract::env::kCpuOperations, std::string(text)};
}

Result<std::string> parse_directory(std::string_view text, std::string_view current_directory) {
  if (text.empty()) return refuse("the name of the directory is empty");
  const std::filesystem::path given(text);
  const std::filesystem::path path = std::filesystem::path(current_directory) / given;
  // "link/.." is not "." when link is a symbolic link: the kernel is left to resolve it.
  if (std::find(given.begin(), given.end(), "..") != given.end()) return path.string();
  std::string normal = path.lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

}  // namespace ddl::cli
