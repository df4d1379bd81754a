// What ranks did: where their time went, whom they waited for, and their calls.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "report/charts.h"
#include "report/section.h"

namespace ddl::report {
namespace {

using launcher::duration_text;
using launcher::RankOutcome;

const char* kWithoutCalls = "the program has made no calls by libddl, or ended before they were read";

Section where_time_went(const JobRecord& record, const JobTimes& times) {
  Section section("Where the time went");
  if (!times.has_calls) return section.not_measured(std::string("compute, wait and move: ") + kWithoutCalls);
  section.draw(shares_chart(times.mean));
  section.table({"Part", "share", "mean of the ranks"},
                {{"Compute: outside of libddl's calls", percent_text(times.mean.compute / times.mean.run),
                  duration_text(times.mean.compute)},
                 {"Wait: until the other ranks had made the call, too",
                  percent_text(times.mean.wait / times.mean.run), duration_text(times.mean.wait)},
                 {"Move: the rest of the calls", percent_text(times.mean.move / times.mean.run),
                  duration_text(times.mean.move)}});
  if (!record.report.start.empty()) {
    // run_seconds is from the first start of a rank to the end of the job.
    const double end = std::max(record.report.run_seconds - times.longest_run, 0.0);
    section.table({"Before and after the ranks ran", "time"},
                  {{"Start: until all ranks ran", duration_text(record.report.start.back().seconds)},
                   {"End: after the rank that ran longest", duration_text(end)}});
  }
  section.table(
      {"Efficiency", "value"},
      {{"Load balance: mean over longest compute time", percent_text(times.efficiency.load_balance)},
       {"Communication: longest compute time over run time", percent_text(times.efficiency.communication)},
       {"Parallel: their product", percent_text(times.efficiency.parallel())}});
  section.note(
      "The efficiencies are those of the POP project; 80 % and more is good. Waits that end within a spin of "
      "some microseconds count as move.");
  return section;
}

Section by_rank(const JobTimes& times, const std::vector<std::string>& hosts) {
  Section section("Rank by rank");
  if (times.ranks.empty()) return section.not_measured("no rank has run");
  section.draw(ranks_chart(times, hosts));
  section.note(
      times.ranks.size() <= kMaxRows
          ? "Full: compute. Hollow: wait. Lower half: move."
          : fmt::format(
                "Full: compute. Hollow: wait. Lower half: move. Each row is the mean of several of the {} "
                "ranks.",
                times.ranks.size()));
  return section;
}

/// The pairs of ranks of which the one has slept longest for the other.
std::vector<Section::Row> longest_waits(const launcher::JobReport& report) {
  constexpr std::size_t kMostPairs = 20;
  struct Pair {
    int rank, awaited;
    double seconds;
  };
  std::vector<Pair> pairs;
  for (const RankOutcome& rank : report.ranks) {
    const double lost = lost_share(rank);
    for (const launcher::AwaitedRank& one : rank.calls.awaited)
      pairs.push_back({rank.rank, one.rank, lost * one.seconds});
  }
  const auto end = pairs.begin() + static_cast<std::ptrdiff_t>(std::min(kMostPairs, pairs.size()));
  std::ranges::partial_sort(pairs, end, std::ranges::greater(), &Pair::seconds);
  std::vector<Section::Row> rows;
  for (auto pair = pairs.begin(); pair != end; ++pair)
    rows.push_back(
        {fmt::format("{}", pair->rank), fmt::format("{}", pair->awaited), duration_text(pair->seconds)});
  return rows;
}

Section waits(const JobRecord& record, const JobTimes& times, const std::vector<std::string>& hosts) {
  Section section("Who waited for whom");
  if (!times.has_calls) return section.not_measured(kWithoutCalls);
  if (times.late.empty()) return section.sentence("No rank has slept in a call until another one came.");
  section.draw(waits_chart(record.report));
  constexpr double kLeastShare = 0.001;
  std::vector<Section::Row> rows;
  for (const LateRank& late : times.late) {
    if (rows.size() == kMostRows || (!rows.empty() && late.share < kLeastShare)) break;
    const auto rank = static_cast<std::size_t>(late.rank);
    rows.push_back({fmt::format("{}", late.rank), rank < hosts.size() ? hosts[rank] : "",
                    duration_text(late.seconds), percent_text(late.share)});
  }
  section.table({"Rank", "host", "mean wait of the others for it", "of their time"}, rows, 2);
  // The matrix is of hosts then.
  if (record.report.ranks.size() > kMaxRows)
    section.table({"Rank", "waited for rank", "slept for it"}, longest_waits(record.report));
  return section;
}

/// Sums over all ranks, by kind of call.
Section calls(const JobRecord& record) {
  struct Sum {
    double calls = 0, bytes = 0, seconds = 0, wait = 0;
  };
  std::map<std::pair<std::string, bool>, Sum> sums;
  double ranks = 0;
  for (const RankOutcome& rank : record.report.ranks) {
    if (!rank.calls.sums.empty()) ++ranks;
    for (const launcher::CallSum& one : rank.calls.sums) {
      Sum& sum = sums[{one.kind, one.is_named}];
      sum.calls += static_cast<double>(one.calls);
      sum.bytes += static_cast<double>(one.bytes);
      sum.seconds += one.seconds;
      sum.wait += one.wait_seconds;
    }
  }
  Section section("Collectives, and the bandwidth that they reached");
  if (sums.empty()) return section.not_measured(kWithoutCalls);
  std::vector<Section::Row> rows;
  for (const auto& [key, sum] : sums) {
    if (sum.calls == 0) continue;  // a step of calls of other kinds
    const double moving = sum.seconds - sum.wait;
    rows.push_back({key.first, key.second ? "named tensors" : "in order",
                    fmt::format("{:.0f}", sum.calls / ranks), bytes_text(sum.bytes / ranks),
                    duration_text(sum.seconds / ranks), duration_text(sum.wait / ranks),
                    sum.bytes > 0 && moving > 0 ? bytes_text(sum.bytes / moving) + "/s" : ""});
  }
  section.table({"Kind", "made", "calls", "data", "time", "of it wait", "data / (time - wait)"}, rows, 2);
  section.note(
      "All numbers are means of a rank. No limit of this machine is known to compare the bandwidth with; "
      "ddl-bench measures it.");
  return section;
}

}  // namespace

std::vector<Section> sections_of_ranks(const JobRecord& record, const JobTimes& times,
                                       const std::vector<std::string>& hosts) {
  return {where_time_went(record, times), by_rank(times, hosts), waits(record, times, hosts), calls(record)};
}

}  // namespace ddl::report
