#include "cli/options/script_values.h"

#include <algorithm>

#include "cli/options/option_values.h"
#include "cli/options/readers.h"
#include "templates/cluster/slurm_values.h"

namespace ddl::cli {

namespace {

constexpr int kMaxNodes = 1 << 20;

}  // namespace

Result<std::string> parse_line(const std::string& text) {
  if (text.find_first_of("\r\n") != std::string::npos) return refuse("its value has several lines");
  return not_empty(text);
}

Result<std::string> parse_container_runtime(const std::string& text) {
  const auto names = templates::container_runtimes();
  if (std::find(names.begin(), names.end(), text) != names.end()) return text;
  return refuse_word(text, {names.begin(), names.end()});
}

Result<std::pair<int, int>> parse_node_range(const std::string& text) {
  const std::size_t dash = std::min(text.find('-', 1), text.size());
  DDL_ASSIGN(min, parse_count(text.substr(0, dash), 1, kMaxNodes));
  if (dash == text.size()) return std::pair(min, 0);
  DDL_ASSIGN(max, parse_count(text.substr(dash + 1), 1, kMaxNodes));
  if (max <= min) return refuse(in_quotes(text) + " is not a range of nodes, the least number first");
  return std::pair(min, max);
}

Result<GpuCount> parse_gpu_count(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string type = colon == std::string::npos ? "" : text.substr(0, colon);
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  const bool is_plain = type.find_first_not_of(kPlain) == std::string::npos;
  if (!is_plain || colon == 0)
    return refuse(in_quotes(text) + " is not a number of GPUs, or a type and a number, as in a100:4");
  DDL_ASSIGN(count, parse_count(colon == std::string::npos ? text : text.substr(colon + 1), 0, kMaxGpus));
  return GpuCount{type, count};
}

Result<templates::GpuChoice> parse_gpu_choice(const std::string& text) {
  using enum templates::GpuChoice;
  return one_of<templates::GpuChoice>(text, {{"visible-devices", kVisibleDevices}, {"gpu-bind", kGpuBind}});
}

Result<affinity::GpuVendor> parse_gpu_vendor(const std::string& text) {
  using enum affinity::GpuVendor;
  return one_of<affinity::GpuVendor>(
      text, {{name_of(kNvidia), kNvidia}, {name_of(kAmd), kAmd}, {name_of(kIntel), kIntel}});
}

Result<std::string> parse_time_limit(const std::string& text) {
  if (templates::slurm_minutes(text) || text == "UNLIMITED") return text;
  if (const auto slurms = templates::slurm_time_of(text)) return *slurms;
  return refuse("'" + text +
                "' is not a time limit: minutes, 30:00, 2:00:00, 1-12, 1-12:00:00, 90m, 2h or 1d12h");
}

Result<std::string> parse_slurm_value(const std::string& text, std::string_view option) {
  DDL_ASSIGN(line, parse_line(text));
  if (const std::string wrong = templates::wrong_slurm_value(option, line); !wrong.empty())
    return refuse(wrong);
  return line;
}

}  // namespace ddl::cli
