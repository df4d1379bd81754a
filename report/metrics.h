// What a site's monitoring reads of a running job, in the text formats of Prometheus.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "launcher/job/job_inspection.h"

namespace ddl::report {

/// The names, units and labels of all metrics: the documentation has the same table.
struct MetricFamily {
  enum class Kind { kInfo, kGauge, kCounter };
  Kind kind = Kind::kGauge;
  std::string_view name;  ///< of a counter without "_total"
  std::string_view unit;  ///< "seconds", "bytes", "joules": also the end of the name; "": a number of things
  std::string_view labels;  ///< beside jobid, separated by blanks
  std::string_view help;    ///< one sentence
};
std::span<const MetricFamily> metric_families();

enum class MetricsFormat {
  kPrometheus,   ///< text/plain; version=0.0.4
  kOpenMetrics,  ///< application/openmetrics-text; version=1.0.0
};

/// What has samples of its own. Those of smaller parts are added up, and the label of these is left out.
enum class MetricsDetail {
  kAuto,  ///< ranks, if there are at most kMostRanks; with more than kMostSeries samples the next one of these
  kRank,
  kHost,
  kJob,
};
inline constexpr std::size_t kMostRanks = 256;
inline constexpr std::size_t kMostSeries = 5000;

/// job: answered to InspectJob::counts. time: for time stamps, in seconds since 1970; nullopt: without them.
/// What was not measured has no sample. Labels are valid UTF-8, and nothing in them ends a line. Pure.
std::string metrics_text(const launcher::JobInspection& job, MetricsFormat format,
                         MetricsDetail detail = MetricsDetail::kAuto,
                         std::optional<double> time = std::nullopt);

}  // namespace ddl::report
