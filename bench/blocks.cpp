#include "bench/blocks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "bench/statistics.h"

namespace ddl::bench {
namespace {

// Samples of one contender: [case][block][time].
struct Collected {
  std::vector<std::vector<std::vector<double>>> times;
  double cpu_seconds = 0;
  int runs = 0;
};

void show_progress(const std::string& text) {
  if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K{}", text);
}

}  // namespace

void run_blocks(const std::string& what, std::vector<Contender*> contenders, int blocks,
                const RunContender& run, const std::vector<Case*>& cases) {
  std::erase_if(contenders, [](const Contender* contender) { return contender->is_excluded(); });
  std::vector<Collected> collected(contenders.size());
  for (Collected& one : collected) {
    one.times.assign(cases.size(), std::vector<std::vector<double>>(blocks));
  }

  const auto run_once = [&](std::size_t index) -> std::optional<RunTimes> {
    Contender& contender = *contenders[index];
    if (contender.failed) return std::nullopt;
    for (int attempt = 0; attempt < 2; ++attempt) {
      auto times = run(contender);
      if (times) return std::move(*times);
      contender.failed_runs += 1;
      contender.last_failure = times.error().message();
    }
    contender.failed = contender.last_failure;
    return std::nullopt;
  };

  for (std::size_t index = 0; index < contenders.size(); ++index) {
    show_progress(fmt::format("{}: warming up {}", what, contenders[index]->name));
    run_once(index);
  }
  for (int block = 0; block < blocks; ++block) {
    for (const std::size_t index : abba_order(contenders.size(), block)) {
      show_progress(fmt::format("{}: block {} of {}, {}", what, block + 1, blocks, contenders[index]->name));
      const auto times = run_once(index);
      if (!times) continue;
      Collected& into = collected[index];
      into.cpu_seconds += times->cpu_seconds;
      into.runs += 1;
      for (std::size_t i = 0; i < cases.size(); ++i) {
        into.times[i][block].insert(into.times[i][block].end(), times->by_case[i].begin(),
                                    times->by_case[i].end());
      }
    }
  }
  show_progress("");

  for (std::size_t index = 0; index < contenders.size(); ++index) {
    if (contenders[index]->failed) continue;
    Collected& from = collected[index];
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto& blocks_of_case = from.times[i];
      if (std::all_of(blocks_of_case.begin(), blocks_of_case.end(),
                      [](const auto& block) { return block.empty(); }))
        continue;
      cases[i]->figures.push_back({contenders[index]->name, std::move(from.times[i]),
                                   from.cpu_seconds / static_cast<double>(from.runs)});
    }
  }
}

}  // namespace ddl::bench
