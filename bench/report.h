// The results of a benchmark as values: times, comparisons, gauges and aims. The table, the JSON, the CSV and the
// chart are made from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/contender.h"
#include "bench/machine.h"
#include "bench/settings.h"
#include "bench/statistics.h"

namespace ddl::bench {

/// One contender's times in one case, in seconds.
struct Figures {
  std::string contender;
  std::vector<std::vector<double>> blocks;  ///< every measured time, block by block; a block may have none
  double cpu_seconds_per_run = 0;  ///< of one run of the contender, all its cases and processes together

  double p50() const;
  double p99() const;
  std::vector<double> block_medians() const;  ///< of those with times
  std::size_t count() const;
};

/// A subject against a peer that ran in the same blocks.
struct Comparison {
  std::string subject;
  std::string peer;
  PairedRatio ratio;
  double spread = 1;  ///< of the case's A/A run
};

/// The work that is the same for all of its contenders: a message size, a kind of program.
struct Case {
  std::string name;   ///< "4096", "init"
  std::string label;  ///< "4 KiB", "init + finalize"
  std::optional<std::uint64_t> bytes;
  std::optional<Distance> distance;     ///< of the ranks, if that was measured
  std::vector<std::string> contenders;  ///< all of the case, also those that are absent
  std::vector<Figures> figures;         ///< of those that ran
  std::optional<double> spread;         ///< of its A/A run, if it has one
  std::vector<Comparison> comparisons;

  const Figures* figures_of(const std::string& contender) const;
  const Comparison* comparison(const std::string& subject, const std::string& peer) const;
};

/// A value that is measured once, beside the times.
struct Gauge {
  std::string name;   ///< "agent-and-spawner-memory"
  std::string label;  ///< for people
  std::string unit;   ///< "bytes", "cores" or "seconds"
  std::optional<double> value;
  std::string note;  ///< how it was measured, or why there is no value
};

/// A goal, and whether it was reached.
struct Aim {
  std::string text;         ///< "init + finalize takes at most 0.4x of Open MPI's time"
  std::string found;        ///< "0.31x", or why there is no value
  std::optional<bool> met;  ///< nothing if it could not be measured
};

struct Report {
  std::string benchmark;  ///< "launch"
  std::string title;      ///< one line
  std::string method;     ///< what one measured time includes, in one or two sentences
  Settings settings;
  Machine machine;
  /// Share of the machine's CPU time that went to other programs during the measurement.
  double other_load = 0;
  std::vector<Contender> contenders;
  std::vector<Case> cases;
  std::vector<Gauge> gauges;
  std::vector<Aim> aims;
  std::vector<std::string> remarks;  ///< sentences about this run

  const Contender& contender(const std::string& name) const;
};

/// The report with the cases of one distance, for each distance that its cases have; the report itself if they have
/// none.
std::vector<Report> by_distance(const Report& report);

/// The names of two contenders of a case that are compared.
struct Pairing {
  std::string subject;
  std::string peer;
};

/// The comparison of one case with the fastest peer that is neither ours nor a limit (is_limit()). Null if there is
/// none.
const Comparison* best_peer(const Case& of, const std::vector<Contender>& contenders);

/// Fills in the case's spread, and its comparisons for every pairing whose two sides have figures.
void compare(Case& of, const std::vector<Contender>& contenders, const std::vector<Pairing>& pairings);

/// The same comparison of figures that may be of different cases of one run. Nothing if no block has times of both.
std::optional<PairedRatio> ratio_of(const Figures& subject, const Figures& peer);

/// As text for people, ending with a newline.
std::string as_table(const Report& report);
/// Everything but the single times: percentiles, the blocks' medians, ratios, commands, machine. Ends with a newline.
std::string as_json(const Report& report);
/// One row for each case and contender that ran, with a line of names first.
std::string as_csv(const Report& report);

/// Three significant digits with a unit that fits: "0.18 µs", "27.6 ms".
std::string time_text(double seconds);
/// "4 B", "64 KiB", "16 MiB".
std::string size_text(std::uint64_t bytes);

/// An aim for the ratio of two contenders' times: at most limit. With a limit of 1, "equal" counts as met.
Aim ratio_aim(const Report& report, const std::string& text, const Pairing& pairing, double limit);

/// An aim for a gauge: below limit, in the gauge's unit. The report shows the value multiplied by scale, in unit.
Aim gauge_aim(const Report& report, const std::string& text, const std::string& gauge_name, double limit,
              const char* unit, double scale);

}  // namespace ddl::bench
