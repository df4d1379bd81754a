// How much faster a command is with more ranks, and what keeps it from being faster still.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/efficiency.h"
#include "report/job_record.h"

namespace ddl::report {

/// All runs of a study with one number of ranks that have succeeded.
struct ScalingPoint {
  Scaling scaling;  ///< of the median run, beside the smallest number of ranks
  std::size_t runs = 0;
  double fastest = 0, slowest = 0;  ///< seconds of the fastest and the slowest of them
  std::size_t hosts = 0;            ///< on which its ranks ran
  JobTimes times;                   ///< of the median run

  /// Ideally it is one, with any number of ranks.
  double efficiency(ScalingKind kind) const {
    return kind == ScalingKind::kStrong ? scaling.efficiency() : scaling.weak_efficiency();
  }
  /// How many times as much work is done in the same time; ideally growth().
  double speedup(ScalingKind kind) const { return efficiency(kind) * growth(); }
  double growth() const { return static_cast<double>(scaling.ranks) / scaling.base_ranks; }
};

/// A law with one number, which is fitted to the times by least squares: Amdahl's for strong scaling, by which the serial
/// part of the work takes the same time however many ranks there are; Gustafson's for weak scaling, by which it is the
/// part that does not grow with the ranks. Both go through the smallest number of ranks, and see that as one unit.
struct SerialFit {
  double serial_share = 0;   ///< between 0 and 1
  double largest_error = 0;  ///< of the speed-ups by this law, relative to those that were measured
  /// By the law, with this many times as many ranks.
  double speedup(ScalingKind kind, double growth) const;
};

struct ScalingResult {
  ScalingKind kind = ScalingKind::kStrong;
  /// Times are those of a step of named tensors; otherwise those of a whole run, because not every run has such steps.
  bool by_steps = false;
  std::vector<ScalingPoint> points;        ///< by the number of ranks, ascending
  std::size_t runs = 0;                    ///< of the study
  std::vector<const JobRecord*> failures;  ///< runs of the study that did not succeed
  std::optional<SerialFit> fit;            ///< with three points or more

  /// "Amdahl's law", "Gustafson's law".
  const char* law() const { return kind == ScalingKind::kStrong ? "Amdahl's law" : "Gustafson's law"; }
};

/// Must not outlive the study. Pure.
ScalingResult result_of(const ScalingStudy& study);

/// "21.4 ms", and from a second on as launcher::duration_text().
std::string span_text(double seconds);
/// "strong", "weak".
const char* text_of(ScalingKind kind);

}  // namespace ddl::report
