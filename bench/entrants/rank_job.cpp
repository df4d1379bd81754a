#include "bench/entrants/rank_job.h"

#include <sched.h>

#include <algorithm>
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

std::optional<Work> parse_work(std::string_view name) {
  if (const auto collective = parse_collective(name)) return *collective;
  if (const auto model = parse_model(name)) return *model;
  return std::nullopt;
}

Result<int> launched_rank() {
  for (const char* name : {"DDL_BENCH_RANK", contract::env::kPmixRank}) {
    if (const auto rank = small_number(std::getenv(name))) return *rank;
  }
  return fail(ErrorCode::kInvalidArgument, "neither DDL_BENCH_RANK nor PMIX_RANK says which rank this is");
}

}  // namespace

Result<RankJob> join_benchmark(int argc, char** argv, bool has_threads) {
  if (argc != 8)
    return fail(ErrorCode::kInvalidArgument, "usage: WORK RANKS HOSTS CPUS PLAN FOLDER SCOREBOARD");
  const auto work = parse_work(argv[1]);
  if (!work) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("\"{}\" is neither a collective nor a model", argv[1]));
  }
  const auto rank = launched_rank();
  if (!rank) return fail(rank.error());
  const auto ranks = small_number(argv[2]);
  if (!ranks || *rank >= *ranks) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("rank {} of \"{}\" ranks", *rank, argv[2]));
  }
  const auto hosts = small_number(argv[3]);
  if (!hosts || *hosts < 1 || *ranks % *hosts != 0) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("{} ranks on \"{}\" hosts", *ranks, argv[3]));
  }
  std::vector<int> cpus;
  for (const std::string_view text : split(argv[4], ',')) {
    const auto cpu = small_number(std::string(text).c_str());
    if (!cpu) return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is no list of CPUs", argv[4]));
    cpus.push_back(*cpu);
  }
  cpu_set_t own;
  CPU_ZERO(&own);
  if (has_threads) {
    for (const int cpu : cpus) CPU_SET(cpu, &own);
  } else {
    CPU_SET(cpus[static_cast<std::size_t>(*rank) % cpus.size()], &own);
  }
  if (::sched_setaffinity(0, sizeof own, &own) != 0) return fail_errno("sched_setaffinity");

  auto plan = parse_plan(argv[5]);
  if (!plan) return fail(std::move(plan.error()));
  auto scoreboard = Scoreboard::open(argv[7], *ranks, *plan);
  if (!scoreboard) return fail(std::move(scoreboard.error()));
  return RankJob{.work = *work,
                 .rank = *rank,
                 .ranks = *ranks,
                 .hosts = *hosts,
                 .cpus = static_cast<int>(cpus.size()),
                 .plan = std::move(*plan),
                 .folder = argv[6],
                 .scoreboard = std::move(*scoreboard),
                 .has_threads = has_threads};
}

int fail_rank(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return EXIT_FAILURE;
}

Status check_world(const RankJob& job, int rank, int size) {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof own, &own) != 0) return fail_errno("sched_getaffinity");
  if (CPU_COUNT(&own) != (job.has_threads ? std::min(job.cpus, CPU_SETSIZE) : 1))
    return fail(ErrorCode::kProtocol, "the library has undone the pinning");
  if (rank == job.rank && size == job.ranks) return {};
  return fail(ErrorCode::kProtocol,
              fmt::format("the launcher started rank {} of {}, but the library sees rank {} of {}", job.rank,
                          job.ranks, rank, size));
}

}  // namespace ddl::bench
