// The pictures of a report: SVG that stands in a page, with the page's colours, and without a script. What differs by
// colour differs by its form, too.
#pragma once

#include <string>
#include <vector>

#include "report/scaling.h"

namespace ddl::report {

/// One bar for the job: the shares of compute, wait and move, each with its name and percentage. Pure, as all here.
std::string shares_chart(const RankTimes& mean);

/// A row for each rank, or for a block of neighbouring ranks if there are more than kMaxRows, with its times: compute
/// fills the row, wait is hollow, move fills its lower half. hosts: the name of each rank's host.
std::string ranks_chart(const JobTimes& times, const std::vector<std::string>& hosts);
inline constexpr int kMaxRows = 64;

/// Who waited (rows) for whom (columns): the darker, the longer. Of more than kMaxRows ranks it shows their hosts. "" if
/// these are more, too, or if nobody waited.
std::string waits_chart(const launcher::JobReport& report);

/// The CPUs of each rank of a host. Hosts with the same binding share a picture, which says how many they are. At most
/// kMaxBoundHosts pictures, each with at most kMaxRows ranks. "" if no rank is bound.
std::string bindings_chart(const launcher::JobReport& report);
inline constexpr std::size_t kMaxBoundHosts = 4;

/// The measured speed-ups of a study over the number of ranks, each with the span of its runs, beside the ideal and the
/// fitted law. "" without points.
std::string speedup_chart(const ScalingResult& result);

/// A row for each number of ranks, with the shares of its times, as in ranks_chart(). "" if no run has made calls.
std::string sizes_chart(const ScalingResult& result);

/// Memory peaks of ranks, in bytes: a bar for each rank, or of the largest one of neighbouring ranks if there are more than
/// kMaxRows.
std::string memory_chart(const std::vector<double>& peaks);

}  // namespace ddl::report
