#include "bench/entrants/rank_job.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "contract/environment.h"

namespace ddl::bench {
namespace {

std::optional<int> small_number(const char* text) {
  const auto number = text == nullptr ? std::nullopt : parse_integer(text);
  if (!number || *number < 0 || *number > 100000) return std::nullopt;
  return static_cast<int>(*number);
}

Result<int> launched_rank() {
  for (const char* name : {"DDL_BENCH_RANK", contract::env::kPmixRank}) {
    if (const auto rank = small_number(std::getenv(name))) return *rank;
  }
  return fail(ErrorCode::kInvalidArgument, "neither DDL_BENCH_RANK nor PMIX_RANK says which rank this is");
}

}  // namespace

Result<RankJob> join_benchmark(int argc, char** argv) {
  if (argc != 5) return fail(ErrorCode::kInvalidArgument, "usage: RANKS CPUS PLAN SCOREBOARD");
  const auto rank = launched_rank();
  if (!rank) return fail(rank.error());
  const auto ranks = small_number(argv[1]);
  if (!ranks || *rank >= *ranks) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("rank {} of \"{}\" ranks", *rank, argv[1]));
  }
  std::vector<int> cpus;
  for (const std::string_view text : split(argv[2], ',')) {
    const auto cpu = small_number(std::string(text).c_str());
    if (!cpu) return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is no list of CPUs", argv[2]));
    cpus.push_back(*cpu);
  }
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cpus[static_cast<std::size_t>(*rank) % cpus.size()], &own);
  if (::sched_setaffinity(0, sizeof own, &own) != 0) return fail_errno("sched_setaffinity");

  auto plan = parse_plan(argv[3]);
  if (!plan) return fail(std::move(plan.error()));
  auto scoreboard = Scoreboard::open(argv[4], *ranks, *plan);
  if (!scoreboard) return fail(std::move(scoreboard.error()));
  return RankJob{*rank, *ranks, static_cast<int>(cpus.size()), std::move(*plan), std::move(*scoreboard)};
}

int fail_rank(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return EXIT_FAILURE;
}

Status check_world(const RankJob& job, int rank, int size) {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof own, &own) != 0) return fail_errno("sched_getaffinity");
  if (CPU_COUNT(&own) != 1) return fail(ErrorCode::kProtocol, "the library has undone the pinning");
  if (rank == job.rank && size == job.ranks) return {};
  return fail(ErrorCode::kProtocol,
              fmt::format("the launcher started rank {} of {}, but the library sees rank {} of {}", job.rank,
                          job.ranks, rank, size));
}

}  // namespace ddl::bench
