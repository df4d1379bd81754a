#include "cli/mpi_types.h"

#include <algorithm>

#include "base/text.h"
#include "cli/command_output.h"

namespace ddl::cli {

std::vector<std::string> parse_mpi_types(std::string_view text) {
  // A name a line after a heading, with "srun: " before each where it goes to standard error; and then
  // "specific pmix plugin versions available: pmix_v3,pmix_v4".
  constexpr std::string_view kPrefix = "srun: ";
  constexpr std::string_view kVersions = "versions available: ";
  std::vector<std::string> types;
  for (std::string_view line : split(text, '\n')) {
    if (line.starts_with(kPrefix)) line.remove_prefix(kPrefix.size());
    const std::size_t versions = line.find(kVersions);
    if (versions != std::string_view::npos) line.remove_prefix(versions + kVersions.size());
    for (const std::string_view name : split(line, ',')) {
      const std::string_view type = trim(name);
      const bool is_name = !type.empty() && std::all_of(type.begin(), type.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      });
      if (is_name) types.emplace_back(type);
    }
  }
  return types;
}

Result<std::vector<std::string>> ask_mpi_types() {
  constexpr std::chrono::seconds kPatience{10};
  const auto said = command_output({"srun", "--mpi=list"}, "", kPatience);
  if (!said) return fail(said.error());
  auto types = parse_mpi_types(said->out + "\n" + said->err);
  if (types.empty()) return fail(ErrorCode::kUnavailable, "srun --mpi=list names no kind of MPI");
  return types;
}

}  // namespace ddl::cli
