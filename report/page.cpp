#include "report/page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <kainjow/mustache.hpp>

#include "base/error.h"
#include "base/printable_text.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "report/charts.h"
#include "report/efficiency.h"
#include "report/page_files.h"
#include "report/verdict.h"

namespace ddl::report {
namespace {

using kainjow::mustache::data;
using launcher::duration_text;
using launcher::RankOutcome;

constexpr std::size_t kMostRows = 10;  // of a table of the worst ranks

/// Bytes of other programs as valid text. Characters that change the direction of writing are shown by their codes.
std::string shown(std::string_view text) {
  std::string line = printable_line(text);
  for (const std::string_view mark : {"\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e",
                                      "\u2066", "\u2067", "\u2068", "\u2069"}) {
    for (std::size_t at = line.find(mark); at != std::string::npos; at = line.find(mark, at))
      line.replace(at, mark.size(), "\uFFFD");
  }
  return line;
}

std::string bytes_text(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1, kUnits.at(unit));
}

std::string time_text(double seconds_since_1970) {
  const auto seconds = static_cast<std::time_t>(seconds_since_1970);
  std::tm parts{};
  if (seconds <= 0 || ::gmtime_r(&seconds, &parts) == nullptr) return "";
  std::array<char, 40> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text.data(), length};
}

/// A section of the page. What is added appears in the order: sentences, a picture, tables, notes, quotes.
class Section {
 public:
  explicit Section(const std::string& title) : data_("title", title) {}

  Section& not_measured(const std::string& why) {
    data_.set("not-measured", why);
    return *this;
  }
  Section& sentence(const std::string& text) { return add("paragraph", data("text", text)); }
  Section& note(const std::string& text) { return add("note", data("text", text)); }
  Section& picture(const std::string& svg) {
    data_.set("picture", svg);
    return *this;
  }
  Section& quote(const std::string& title, const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += shown(line) + "\n";
    data one("title", title);
    one.set("text", text);
    return add("quote", one);
  }
  using Row = std::vector<std::string>;
  /// text_columns: the first ones, which are not numbers.
  Section& table(const Row& head, const std::vector<Row>& rows, std::size_t text_columns = 1) {
    const auto cells_of = [text_columns](const Row& row) {
      data cells{data::type::list};
      for (std::size_t column = 0; column < row.size(); ++column) {
        data cell("cell", shown(row[column]));
        cell.set("is-text", column < text_columns);
        cells.push_back(cell);
      }
      return cells;
    };
    data lines{data::type::list};
    for (const Row& row : rows) lines.push_back(data("cells", cells_of(row)));
    data table("head", cells_of(head));
    table.set("row", lines);
    return add("table", table);
  }
  data take() {
    for (const auto& [name, items] : lists_) {
      data list{data::type::list};
      for (const data& item : items) list.push_back(item);
      data_.set(name, list);
    }
    return data_;
  }

 private:
  Section& add(const std::string& list, const data& item) {
    lists_[list].push_back(item);
    return *this;
  }
  data data_;
  std::map<std::string, std::vector<data>> lists_;
};

const char* kWithoutCalls = "the program has made no calls by libddl, or ended before they were read";

Section where_time_went(const JobTimes& times) {
  Section section("Where the time went");
  if (!times.has_calls)
    return std::move(section.not_measured(std::string("compute, wait and move: ") + kWithoutCalls));
  section.picture(shares_chart(times.mean));
  section.table({"", "share", "mean of the ranks"},
                {{"Compute: outside of libddl's calls", percent_text(times.mean.compute / times.mean.run),
                  duration_text(times.mean.compute)},
                 {"Wait: until the other ranks had made the call, too",
                  percent_text(times.mean.wait / times.mean.run), duration_text(times.mean.wait)},
                 {"Move: the rest of the calls", percent_text(times.mean.move / times.mean.run),
                  duration_text(times.mean.move)}});
  section.table(
      {"Efficiency", ""},
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
  if (times.ranks.empty()) return std::move(section.not_measured("no rank has run"));
  section.picture(ranks_chart(times, hosts));
  section.note(
      times.ranks.size() <= kMaxRows
          ? "Full: compute. Hollow: wait. Lower half: move."
          : fmt::format(
                "Full: compute. Hollow: wait. Lower half: move. Each row is the mean of several of the {} "
                "ranks.",
                times.ranks.size()));
  return section;
}

Section waits(const JobRecord& record, const JobTimes& times, const std::vector<std::string>& hosts) {
  Section section("Who waited for whom");
  if (!times.has_calls) return std::move(section.not_measured(kWithoutCalls));
  if (times.late.empty())
    return std::move(section.sentence("No rank has slept in a call until another one came."));
  section.picture(waits_chart(record.report));
  std::vector<Section::Row> rows;
  for (const LateRank& late : times.late) {
    if (rows.size() == kMostRows) break;
    const auto rank = static_cast<std::size_t>(late.rank);
    rows.push_back({fmt::format("{}", late.rank), rank < hosts.size() ? hosts[rank] : "",
                    duration_text(late.seconds), percent_text(late.share)});
  }
  section.table({"Rank", "host", "mean wait of the others for it", "of their time"}, rows, 2);
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
  if (sums.empty()) return std::move(section.not_measured(kWithoutCalls));
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

std::string bytes_or_unknown(std::int64_t bytes) {
  if (bytes == std::numeric_limits<std::int64_t>::max()) return "none";
  return bytes < 0 ? "" : bytes_text(static_cast<double>(bytes));
}

Section memory(const JobRecord& record) {
  Section section("Memory");
  std::vector<double> peaks;
  std::map<std::string, double> by_host;
  for (const RankOutcome& rank : record.report.ranks) {
    if (rank.usage.peak_resident_bytes < 0) continue;
    peaks.push_back(static_cast<double>(rank.usage.peak_resident_bytes));
    by_host[rank.host] += peaks.back();
  }
  if (peaks.empty() && record.report.hosts.empty())
    return std::move(section.not_measured("no rank has ended in a way that its host could report"));
  for (const RankOutcome& rank : record.report.ranks) {
    if (!rank.kill_explanation.empty())
      section.sentence(fmt::format("Rank {}: {}.", rank.rank, shown(rank.kill_explanation)));
  }
  section.picture(memory_chart(peaks));
  // The hosts that came nearest to their limit first.
  std::vector<const launcher::HostUsage*> hosts;
  for (const launcher::HostUsage& host : record.report.hosts) hosts.push_back(&host);
  std::ranges::stable_sort(hosts, std::ranges::greater(),
                           [](const launcher::HostUsage* host) { return host->usage.memory.peak; });
  std::vector<Section::Row> rows;
  for (const launcher::HostUsage* host : hosts) {
    if (rows.size() == kMostRows) break;
    const launcher::MemoryUse& memory = host->usage.memory;
    rows.push_back({host->host, memory.cgroup.empty() ? memory.unknown : memory.cgroup,
                    bytes_text(by_host[host->host]), bytes_or_unknown(memory.peak),
                    bytes_or_unknown(memory.limit),
                    memory.oom_kills < 0 ? "" : fmt::format("{}", memory.oom_kills)});
  }
  if (rows.empty())
    return std::move(section.note("Not measured: the limits of the hosts, which did not report at the end."));
  section.table({"Host", "cgroup", "peaks of its ranks", "peak", "limit", "out-of-memory kills"}, rows, 2);
  section.note(
      "The peaks of ranks need not have come at the same time. The peak of a cgroup is that since it was "
      "made, with "
      "all that runs in it, and counts cached files, too; its limit is the lowest of those above it.");
  return section;
}

Section networks(const JobRecord& record) {
  Section section("Networks");
  struct Use {
    const launcher::HostUsage* host;
    const launcher::NetworkUse* network;
  };
  std::vector<Use> uses;
  for (const launcher::HostUsage& host : record.report.hosts) {
    for (const launcher::NetworkUse& one : host.usage.networks) uses.push_back({&host, &one});
  }
  if (uses.empty())
    return std::move(section.not_measured(record.report.hosts.empty() ? "no host has reported at the end"
                                                                      : "no adapter has counted any bytes"));
  const auto bytes = [](const Use& use) {
    return std::max(use.network->received_bytes, use.network->sent_bytes);
  };
  std::ranges::stable_sort(uses, std::ranges::greater(), bytes);
  std::vector<Section::Row> rows;
  for (const Use& use : uses) {
    if (rows.size() == kMostRows) break;
    const auto limit = static_cast<double>(use.network->limit_bytes_per_second);
    const double rate =
        use.host->usage.seconds > 0 ? static_cast<double>(bytes(use)) / use.host->usage.seconds : 0;
    rows.push_back({use.host->host, use.network->device,
                    bytes_text(static_cast<double>(use.network->received_bytes)),
                    bytes_text(static_cast<double>(use.network->sent_bytes)), bytes_text(rate) + "/s",
                    limit > 0 ? bytes_text(limit) + "/s" : "", limit > 0 ? percent_text(rate / limit) : ""});
  }
  section.table({"Host", "adapter", "received", "sent", "mean rate", "link", "of it"}, rows, 2);
  section.note(
      "Bytes of all programs on the host, from the start of ddlrun's agent on. The speed of a link is what "
      "Linux "
      "states in /sys.");
  return section;
}

Section energy(const JobRecord& record) {
  Section section("Energy");
  std::map<std::string, double> joules;
  std::string unknown = "no host has reported at the end";
  double seconds = 0;
  for (const launcher::HostUsage& host : record.report.hosts) {
    for (const launcher::EnergyUse& one : host.usage.energy)
      joules[one.domain] += static_cast<double>(one.joules);
    if (!host.usage.energy_unknown.empty()) unknown = host.usage.energy_unknown;
    seconds = std::max(seconds, host.usage.seconds.value);
  }
  if (joules.empty()) return std::move(section.not_measured(shown(unknown)));
  std::vector<Section::Row> rows;
  for (const auto& [domain, sum] : joules)
    rows.push_back(
        {domain, fmt::format("{:.0f} J", sum), seconds > 0 ? fmt::format("{:.0f} W", sum / seconds) : ""});
  section.table({"Part", "energy", "mean power"}, rows);
  section.note(
      "Sums over the hosts, of all that ran there. Without GPUs, unless the part is the whole node.");
  return section;
}

Section processors(const JobRecord& record) {
  Section section("CPUs and GPUs");
  std::vector<std::pair<double, const RankOutcome*>> used;
  for (const RankOutcome& rank : record.report.ranks) {
    if (const double cpus = cpus_used(rank); cpus >= 0) used.emplace_back(cpus, &rank);
  }
  if (used.empty()) {
    section.not_measured("no rank has ended in a way that its host could report");
  } else {
    std::ranges::sort(used, {}, &std::pair<double, const RankOutcome*>::first);
    const auto row = [](const char* name, const std::pair<double, const RankOutcome*>& one) {
      return Section::Row{name,
                          fmt::format("{}", one.second->rank),
                          one.second->host,
                          fmt::format("{:.2f}", one.first),
                          duration_text(one.second->usage.user_seconds),
                          duration_text(one.second->usage.system_seconds)};
    };
    section.table(
        {"CPUs used", "rank", "host", "CPUs", "own code", "kernel"},
        {row("fewest", used.front()), row("median", used[used.size() / 2]), row("most", used.back())}, 3);
  }
  section.note("Not measured: the use of GPUs.");
  return section;
}

Section end_of(const JobRecord& record) {
  Section section("How it ended");
  if (record.said.empty()) {
    section.sentence("Every rank exited with 0.");
  } else {
    section.quote("What ddlrun said:", record.said);
  }
  std::size_t quoted = 0;
  for (const RankOutcome& rank : record.report.ranks) {
    const bool is_first = record.report.first_failure == rank.rank;
    if (rank.stderr_tail.empty() || is_first || quoted == kMostRows) continue;
    section.quote(
        fmt::format("{} {}; its last lines on standard error:", shown(rank_label(rank)), rank_ending(rank)),
        rank.stderr_tail);
    ++quoted;
  }
  if (!record.report.timeline.empty())
    section.sentence("What every rank did, and when, is in " + shown(record.report.timeline) + ".");
  return section;
}

Section start(const JobRecord& record) {
  Section section("Start");
  if (record.report.start.empty()) return std::move(section.not_measured("the job did not begin"));
  std::vector<Section::Row> rows;
  for (const launcher::StartPhase& phase : record.report.start)
    rows.push_back({phase.name, duration_text(phase.seconds)});
  section.table({"Step", "after"}, rows);
  return section;
}

Section generations(const JobRecord& record) {
  Section section("Generations of the elastic job");
  std::vector<Section::Row> rows;
  for (const launcher::GenerationReport& one : record.report.generations) {
    rows.push_back({fmt::format("{}", one.number.generation), one.end.message,
                    fmt::format("{}", one.num_ranks), fmt::format("{}", one.hosts.size()),
                    duration_text(one.begin_seconds), duration_text(one.run_seconds)});
  }
  section.table({"Generation", "why it ended", "ranks", "hosts", "began after", "ran for"}, rows, 2);
  section.note("All other sections are of the last one.");
  return section;
}

Section scaling(const JobRecord& record, const JobRecord* baseline) {
  Section section("Scaling");
  if (baseline == nullptr)
    return std::move(section.not_measured("there is no run to compare with; --baseline FILE.json names one"));
  const Scaling scaling{static_cast<int>(record.report.ranks.size()),
                        static_cast<int>(baseline->report.ranks.size()), record.report.run_seconds,
                        baseline->report.run_seconds};
  if (scaling.ranks == 0 || scaling.base_ranks == 0 || scaling.seconds <= 0)
    return std::move(section.not_measured("one of the two runs has no ranks that ran"));
  section.table({"", "ranks", "time"},
                {{"Baseline: " + baseline->name, fmt::format("{}", scaling.base_ranks),
                  duration_text(scaling.base_seconds)},
                 {"This run", fmt::format("{}", scaling.ranks), duration_text(scaling.seconds)}});
  section.table({"", ""},
                {{"Speed-up", fmt::format("{:.2f}", scaling.speedup())},
                 {"Efficiency, if the work is the same (strong scaling)", percent_text(scaling.efficiency())},
                 {"Efficiency, if the work grows with the ranks (weak scaling)",
                  percent_text(scaling.weak_efficiency())}});
  return section;
}

Section software(const JobRecord& record) {
  Section section("Software and environment");
  std::vector<Section::Row> rows{{"ddlrun", record.version}};
  for (const auto& [name, value] : record.environment) rows.push_back({name, value});
  section.table({"Name", "value"}, rows, 2);
  section.note(
      "Of the environment, only DDL_*, OMP_*, NCCL_*, UCX_* and FI_* are shown, and no name that may be of a "
      "secret.");
  return section;
}

Section next(const JobRecord& record) {
  Section section("The next request");
  const std::vector<std::string> directives = next_request(record);
  if (directives.empty())
    return std::move(section.not_measured(record.scheduler_job.empty()
                                              ? "the job ran without a scheduler"
                                              : "the job has failed, so its needs are unknown"));
  section.quote("With a margin of 20 % for memory and 50 % for time, this job needs:", directives);
  return section;
}

const char* class_of(Finding::Weight weight, bool is_success) {
  switch (weight) {
    case Finding::Weight::kFailure: return "failure";
    case Finding::Weight::kLoss: return "loss";
    case Finding::Weight::kFact: return is_success ? "good" : "fact";
  }
  return "";
}

std::vector<std::string> hosts_of(const JobRecord& record) {
  std::vector<std::string> hosts;
  for (const RankOutcome& rank : record.report.ranks) {
    if (rank.rank < 0 || static_cast<std::size_t>(rank.rank) > record.report.ranks.size()) continue;
    hosts.resize(std::max(hosts.size(), static_cast<std::size_t>(rank.rank) + 1));
    hosts[static_cast<std::size_t>(rank.rank)] = shown(rank.host);
  }
  return hosts;
}

data facts(const JobRecord& record) {
  data list{data::type::list};
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    data fact("key", key);
    fact.set("value", shown(value));
    list.push_back(fact);
  };
  add("Hosts", join(record.hosts.size() <= 16
                        ? record.hosts
                        : std::vector<std::string>(record.hosts.begin(), record.hosts.begin() + 16),
                    ", ") +
                   (record.hosts.size() > 16 ? fmt::format(" and {} more", record.hosts.size() - 16) : ""));
  add("Scheduler", record.scheduler_job);
  add("Directory", record.workdir);
  add("Exit code", fmt::format("{}", record.report.exit_code));
  return list;
}

std::string_view file(std::string_view name) {
  for (const EmbeddedFile& one : page_files()) {
    if (one.path == name) return one.text;
  }
  DDL_CHECK(false, std::string(name));
  return {};
}

}  // namespace

std::string page(const JobRecord& record, const JobRecord* baseline) {
  const JobTimes times = times_of(record.report);
  const std::vector<std::string> hosts = hosts_of(record);
  const bool is_success = record.report.reason == launcher::EndReason::kSuccess;
  data values{data::type::object};
  values.set("css", std::string(file("page.css")));
  values.set("name", shown(record.name));
  values.set("outcome",
             is_success ? "succeeded" : fmt::format("failed with exit code {}", record.report.exit_code));
  values.set("size", counted(static_cast<std::int64_t>(record.report.ranks.size()), "rank") + " on " +
                         counted(static_cast<std::int64_t>(record.hosts.size()), "host"));
  values.set("duration", duration_text(record.report.run_seconds));
  values.set("began", time_text(record.began));
  values.set("command", shown(shell_line(record.command)));
  data findings{data::type::list};
  for (const Finding& one : verdict(record, times)) {
    data finding("weight", class_of(one.weight, is_success));
    finding.set("what", shown(one.what));
    if (!one.advice.empty()) finding.set("advice", shown(one.advice));
    findings.push_back(finding);
  }
  values.set("finding", findings);
  values.set("fact", facts(record));
  data sections{data::type::list};
  const auto add = [&](Section section) { sections.push_back(section.take()); };
  add(where_time_went(times));
  add(by_rank(times, hosts));
  add(waits(record, times, hosts));
  add(calls(record));
  add(networks(record));
  add(memory(record));
  add(processors(record));
  add(end_of(record));
  add(energy(record));
  if (!record.report.generations.empty()) add(generations(record));
  add(scaling(record, baseline));
  add(start(record));
  add(software(record));
  add(next(record));
  values.set("section", sections);
  kainjow::mustache::mustache frame{std::string(file("page.html.mustache"))};
  std::string text = frame.render(values);
  DDL_CHECK(frame.is_valid(), frame.error_message());
  return text;
}

}  // namespace ddl::report
