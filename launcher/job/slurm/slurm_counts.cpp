#include "launcher/job/slurm/slurm_counts.h"

#include <limits>
#include <optional>

#include "base/text.h"
#include "launcher/job/host_name.h"

namespace ddl::launcher {
namespace {

std::optional<int> positive(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

Result<std::vector<int>> parse_slurm_counts(std::string_view text, std::size_t most) {
  std::vector<int> counts;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t bracket = part.find("(x");
    const auto count = positive(part.substr(0, bracket));
    const bool repeats = bracket != std::string_view::npos;
    const auto times = !repeats              ? std::optional(1)
                       : part.ends_with(')') ? positive(part.substr(bracket + 2, part.size() - bracket - 3))
                                             : std::nullopt;
    if (!count || !times) {
      return fail(ErrorCode::kInvalidArgument,
                  quoted(text) + " is no list of numbers such as \"2(x3),1\": " + quoted(part));
    }
    if (static_cast<std::size_t>(*times) > most - counts.size())
      return fail(ErrorCode::kInvalidArgument,
                  quoted(text) + " is for more than " + std::to_string(most) + " nodes");
    counts.insert(counts.end(), static_cast<std::size_t>(*times), *count);
  }
  return counts;
}

}  // namespace ddl::launcher
