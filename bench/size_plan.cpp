#include "bench/size_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::bench {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

}  // namespace

std::string plan_text(const std::vector<SizePlan>& plan) {
  std::vector<std::string> parts;
  for (const SizePlan& size : plan)
    parts.push_back(fmt::format("{}:{}:{}", size.bytes, size.calls, size.warm_ups));
  return join(parts, ",");
}

Result<std::vector<SizePlan>> parse_plan(std::string_view text) {
  std::vector<SizePlan> plan;
  for (const std::string_view part : split(text, ',')) {
    const auto fields = split(part, ':');
    std::vector<std::uint64_t> numbers;
    for (const std::string_view field : fields) {
      const auto number = parse_integer(field);
      if (number && *number >= 0) numbers.push_back(static_cast<std::uint64_t>(*number));
    }
    if (fields.size() != 3 || numbers.size() != 3 || numbers[0] == 0 || numbers[1] == 0) {
      return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not BYTES:CALLS:WARM-UPS", part));
    }
    plan.push_back({numbers[0], numbers[1], numbers[2]});
  }
  return plan;
}

const std::vector<std::uint64_t>& default_sizes() {
  static const std::vector<std::uint64_t> sizes = {4,         64,        kKiB,       4 * kKiB,
                                                   16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB,
                                                   4 * kMiB,  16 * kMiB, 64 * kMiB,  256 * kMiB};
  return sizes;
}

std::vector<SizePlan> plan_of_sizes(const std::vector<std::uint64_t>& sizes, bool quick) {
  constexpr std::uint64_t kTraffic = 512 * kMiB;
  std::vector<SizePlan> plan;
  for (const std::uint64_t bytes : sizes) {
    if (quick && bytes > kMiB) continue;
    SizePlan size{bytes, std::clamp<std::uint64_t>(kTraffic / bytes, 8, 2000), 0};
    if (quick) size.calls = std::min<std::uint64_t>(size.calls, 4);
    size.warm_ups = std::clamp<std::uint64_t>(size.calls / 10, 2, 50);
    plan.push_back(size);
  }
  return plan;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t unit = 1;
  for (const auto& [suffix, bytes] : {std::pair{"KiB", kKiB}, std::pair{"MiB", kMiB}, std::pair{"K", kKiB},
                                      std::pair{"M", kMiB}, std::pair{"B", std::uint64_t{1}}}) {
    if (!text.ends_with(suffix)) continue;
    text.remove_suffix(std::string_view(suffix).size());
    unit = bytes;
    break;
  }
  const auto number = parse_integer(trim(text));
  if (!number || *number <= 0 || *number >= (std::int64_t{1} << 20) * static_cast<std::int64_t>(kMiB / unit))
    return std::nullopt;
  return static_cast<std::uint64_t>(*number) * unit;
}

}  // namespace ddl::bench
