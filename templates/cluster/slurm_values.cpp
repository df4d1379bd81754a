#include "templates/cluster/slurm_values.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/text.h"

namespace ddl::templates {
namespace {

/// Digits only, and so few that sums of them cannot overflow.
std::optional<std::int64_t> time_count(std::string_view text) {
  constexpr std::size_t kMaxDigits = 10;
  const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || text.size() > kMaxDigits) return std::nullopt;
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
  // After days the first part is hours; otherwise its unit follows from the number of parts.
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

std::optional<std::int64_t> slurm_megabytes(std::string_view text) {
  constexpr std::int64_t kMaxNumber = std::int64_t{1} << 40;
  const char unit = text.empty() ? '\0' : text.back();
  const bool has_unit = unit != '\0' && std::string_view("kKmMgGtT").find(unit) != std::string_view::npos;
  const auto number = parse_integer(has_unit ? text.substr(0, text.size() - 1) : text);
  if (!number || *number <= 0 || *number > kMaxNumber) return std::nullopt;
  switch (has_unit ? unit : 'M') {
    case 'k':
    case 'K': return (*number + 1023) / 1024;
    case 'g':
    case 'G': return *number * 1024;
    case 't':
    case 'T': return *number * 1024 * 1024;
    default: return *number;
  }
}

namespace {

constexpr std::int64_t kMaxGpus = 65536;

/// "gpu:a100:4(S:0,2),nvme:1" without the text in parentheses, where a comma separates sockets.
std::string without_places(std::string_view gres) {
  std::string text;
  int depth = 0;
  for (const char c : gres) {
    if (c == '(') ++depth;
    if (depth == 0) text += c;
    if (c == ')' && depth > 0) --depth;
  }
  return text;
}

/// The last part of "gpu", "gpu:4", "gpu:a100" or "gpu:a100:4" is the count if it is a number; else there is one.
std::int64_t gres_count(std::string_view item) {
  const auto parts = split(item, ':');
  if (trim(parts.front()) != "gpu") return 0;
  if (parts.size() == 1) return 1;
  const auto count = parse_integer(trim(parts.back()));
  return count ? std::clamp<std::int64_t>(*count, 0, kMaxGpus) : 1;
}

}  // namespace

int gpus_of_gres(std::string_view gres) {
  std::int64_t sum = 0;
  const std::string text = without_places(gres);
  for (const std::string_view item : split(text, ',')) sum = std::min(sum + gres_count(item), kMaxGpus);
  return static_cast<int>(sum);
}

}  // namespace ddl::templates
