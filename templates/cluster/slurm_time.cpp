#include "templates/cluster/slurm_time.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/text.h"

namespace ddl::templates {
namespace {

/// Digits alone, few enough for sums of them not to overflow.
std::optional<std::int64_t> time_count(std::string_view text) {
  constexpr std::size_t kMostDigits = 10;
  const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || text.size() > kMostDigits) return std::nullopt;
  return parse_integer(text);
}

}  // namespace

std::optional<int> slurm_minutes(std::string_view text) {
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  std::int64_t seconds = 0;
  if (has_days) {
    const auto days = time_count(text.substr(0, dash));
    if (!days) return std::nullopt;
    seconds = *days * kDay;
    text.remove_prefix(dash + 1);
  }
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() > 3) return std::nullopt;
  // Behind days the first part is hours; else what it is follows from how many there are.
  std::int64_t unit = has_days || parts.size() == 3 ? kHour : kMinute;
  for (const std::string_view part : parts) {
    const auto count = time_count(part);
    if (!count) return std::nullopt;
    seconds += *count * unit;
    unit /= 60;
  }
  const std::int64_t minutes = (seconds + kMinute - 1) / kMinute;
  if (minutes > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(minutes);
}

}  // namespace ddl::templates
