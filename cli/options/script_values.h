// The values of options of --slurm: parsers as in option_values.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "affinity/topology.h"
#include "base/error.h"
#include "templates/profile/site_profile.h"

namespace ddl::cli {

/// Text without line breaks that is not empty.
Result<std::string> parse_line(const std::string& text);
/// The same, unless sbatch would refuse it as the value of this option ("--mem").
Result<std::string> parse_slurm_value(const std::string& text, std::string_view option);
/// In a form of Slurm: "2:00:00" also of "2h".
Result<std::string> parse_time_limit(const std::string& text);
/// "4" is {4, 0}, "2-4" is {2, 4}.
Result<std::pair<int, int>> parse_node_range(const std::string& text);

struct GpuCount {
  std::string type;  ///< "" for any
  int count = 0;
};
/// "4", "a100:4".
Result<GpuCount> parse_gpu_count(const std::string& text);
Result<templates::GpuChoice> parse_gpu_choice(const std::string& text);
Result<affinity::GpuVendor> parse_gpu_vendor(const std::string& text);
Result<std::string> parse_container_runtime(const std::string& text);

}  // namespace ddl::cli
