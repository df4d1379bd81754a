#include "bench/workload.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::bench {

const std::vector<Collective>& all_collectives() {
  using enum Collective;
  static const std::vector<Collective> all = {kAllreduce, kAllgather, kAlltoall, kBroadcast, kReduceScatter};
  return all;
}

const char* name_of(Collective what) {
  switch (what) {
    case Collective::kAllreduce: return "allreduce";
    case Collective::kAllgather: return "allgather";
    case Collective::kAlltoall: return "alltoall";
    case Collective::kBroadcast: return "broadcast";
    case Collective::kReduceScatter: return "reduce-scatter";
  }
  return "";
}

std::optional<Collective> parse_collective(std::string_view name) {
  for (const Collective what : all_collectives()) {
    if (name == name_of(what)) return what;
  }
  return std::nullopt;
}

const char* describe(Collective what) {
  switch (what) {
    case Collective::kAllreduce: return "f32 sum in place";
    case Collective::kAllgather: return "f32, the size is that of the result";
    case Collective::kAlltoall: return "f32, the size is that of all parts of a rank";
    case Collective::kBroadcast: return "f32 in place";
    case Collective::kReduceScatter: return "f32 sum, the size is that of the input";
  }
  return "";
}

bool is_in_place(Collective what) { return what == Collective::kAllreduce || what == Collective::kBroadcast; }

std::uint64_t whole_bytes(Collective what, std::uint64_t wanted, int ranks) {
  const std::uint64_t shares = shape_of(what, ranks).has_shares ? static_cast<std::uint64_t>(ranks) : 1;
  const std::uint64_t step = shares * sizeof(float);
  return (wanted + step - 1) / step * step;
}

Shape shape_of(Collective what, int ranks) {
  switch (what) {
    case Collective::kAllreduce:
    case Collective::kBroadcast: return {1, 1, false};
    case Collective::kAllgather: return {1, ranks, true};
    case Collective::kAlltoall: return {ranks, ranks, true};
    case Collective::kReduceScatter: return {ranks, 1, true};
  }
  return {};
}

float sent_value(Collective what, int rank, int ranks, int part, int turn) {
  switch (what) {
    case Collective::kAllreduce:
    case Collective::kAllgather: return static_cast<float>(turn + rank + 1);
    case Collective::kBroadcast: return static_cast<float>(rank == 0 ? turn + 1 : -1);
    case Collective::kAlltoall: return static_cast<float>(turn + rank * ranks + part);
    case Collective::kReduceScatter: return static_cast<float>(turn + rank + part + 1);
  }
  return 0;
}

float expected_value(Collective what, int rank, int ranks, int part, int turn) {
  const int sum = ranks * turn + ranks * (ranks + 1) / 2;
  switch (what) {
    case Collective::kAllreduce: return static_cast<float>(sum);
    case Collective::kAllgather: return static_cast<float>(turn + part + 1);
    case Collective::kBroadcast: return static_cast<float>(turn + 1);
    case Collective::kAlltoall: return static_cast<float>(turn + part * ranks + rank);
    case Collective::kReduceScatter: return static_cast<float>(sum + ranks * rank);
  }
  return 0;
}

double min_sent(Collective what, int hosts) {
  const double others = static_cast<double>(hosts - 1) / hosts;
  switch (what) {
    case Collective::kAllreduce: return 2 * others;
    case Collective::kAllgather:
    case Collective::kAlltoall:
    case Collective::kReduceScatter: return others;
    case Collective::kBroadcast: return hosts > 1 ? 1 : 0;
  }
  return 0;
}

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
