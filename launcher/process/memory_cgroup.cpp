#include "launcher/process/memory_cgroup.h"

#include <algorithm>
#include <limits>

#include "base/fd.h"
#include "base/text.h"

namespace ddl::launcher {
namespace {

struct Mount {
  std::string root;   // what of the hierarchy is mounted
  std::string point;  // where
};

// The mount of the hierarchy with a memory controller: cgroup2, or cgroup with option "memory" (proc(5), mountinfo).
std::optional<Mount> find_mount(const std::string& mountinfo, bool v2) {
  for (const auto line : split(mountinfo, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    const bool is_memory = v2 ? after[0] == "cgroup2"
                              : after[0] == "cgroup" &&
                                    ("," + std::string(after[2]) + ",").find(",memory,") != std::string::npos;
    if (is_memory) return Mount{std::string(before[3]), std::string(before[4])};
  }
  return std::nullopt;
}

// The path of this process in that hierarchy: "0::/path" (v2) or "N:...,memory,...:/path" (v1) of /proc/self/cgroup.
std::optional<std::string> find_path(const std::string& cgroups, bool v2) {
  for (const auto line : split(cgroups, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    const bool matches = v2 ? line.starts_with("0::") : controllers.find(",memory,") != std::string::npos;
    if (matches) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

}  // namespace

std::string below_mount_root(const std::string& path, const std::string& root) {
  if (root == "/" || !path.starts_with(root)) return path;
  const std::string rest = path.substr(root.size());
  return rest.empty() || rest.front() == '/' ? rest : path;
}

std::optional<std::int64_t> parse_oom_kills(const std::string& text) {
  for (const auto line : split(text, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() == 2 && words[0] == "oom_kill") return parse_integer(words[1]);
  }
  return std::nullopt;
}

MemoryCgroup MemoryCgroup::watch(const std::string& root) {
  MemoryCgroup found;
  const auto mountinfo = read_file(root + "/proc/self/mountinfo");
  const auto cgroups = read_file(root + "/proc/self/cgroup");
  if (!mountinfo || !cgroups) {
    found.problem_ = "/proc cannot be read";
    return found;
  }
  // v1 first: on hybrid systems the memory controller is there and the v2 tree is mounted without it.
  for (const bool v2 : {false, true}) {
    const auto mount = find_mount(*mountinfo, v2);
    const auto path = find_path(*cgroups, v2);
    if (!mount || !path) continue;
    const std::string below = below_mount_root(*path, mount->root);
    const std::string top = root + mount->point;
    const std::string folder = top + (below == "/" ? "" : below);
    const std::string file = folder + (v2 ? "/memory.events" : "/memory.oom_control");
    const auto text = read_file(file);
    found.before_ = text ? parse_oom_kills(*text) : std::nullopt;
    if (!found.before_) {
      found.problem_ = text ? file + " counts none" : text.error().message();
      continue;
    }
    found.is_v2_ = v2;
    found.file_ = file;
    found.cgroup_ = below;
    for (std::string one = folder; one.size() >= top.size(); one.resize(one.rfind('/'))) {
      found.folders_.push_back(one);
      if (one.rfind('/') == std::string::npos) break;
    }
    return found;
  }
  constexpr std::string_view kNone = "no memory cgroup with a counter of out-of-memory kills is visible here";
  found.problem_ = std::string(kNone) + (found.problem_.empty() ? "" : " (" + found.problem_ + ")");
  return found;
}

namespace {

/// The number in a file of a cgroup; "max" is the largest there is.
std::optional<std::int64_t> limit_or_count(const std::string& file) {
  const auto text = read_file(file);
  if (!text) return std::nullopt;
  const std::string_view number = trim(*text);
  if (number == "max") return std::numeric_limits<std::int64_t>::max();
  return parse_integer(number);
}

std::string mebibytes_text(std::int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

MemoryUse MemoryCgroup::use() const {
  MemoryUse use;
  use.cgroup = cgroup_;
  use.unknown = problem_;
  if (!before_) return use;
  // Version 1 writes a number near the largest where there is no limit.
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;
  std::optional<std::int64_t> lowest;
  for (const std::string& folder : folders_) {
    const auto limit = limit_or_count(folder + (is_v2_ ? "/memory.max" : "/memory.limit_in_bytes"));
    if (limit) lowest = std::min(lowest.value_or(*limit), *limit);
  }
  if (lowest) use.limit = *lowest >= kNoLimit ? std::numeric_limits<std::int64_t>::max() : *lowest;
  use.peak = limit_or_count(folders_.front() + (is_v2_ ? "/memory.peak" : "/memory.max_usage_in_bytes"))
                 .value_or(-1);
  const auto text = read_file(file_);
  const auto now = text ? parse_oom_kills(*text) : std::nullopt;
  if (now) use.oom_kills = *now - *before_;
  return use;
}

std::string MemoryCgroup::explain_kill() const {
  if (!before_)
    return "killed from outside, perhaps for lack of memory; ddlrun cannot find out, because " + problem_;
  const auto text = read_file(file_);
  const auto now = text ? parse_oom_kills(*text) : std::nullopt;
  if (!now) return "killed from outside; " + file_ + " can no longer be read";
  if (*now > *before_) {
    const MemoryUse used = use();
    std::string sizes;
    if (used.limit > 0 && used.limit < std::numeric_limits<std::int64_t>::max())
      sizes += ", with a limit of " + mebibytes_text(used.limit);
    if (used.peak > 0)
      sizes += (sizes.empty() ? ", with a peak of " : " and a peak of ") + mebibytes_text(used.peak);
    return "killed by the kernel for lack of memory: cgroup " + cgroup_ + " counts " +
           counted(*now - *before_, "out-of-memory kill") + " since the job began" + sizes +
           "; use fewer ranks, a smaller batch, or a higher memory limit";
  }
  return "killed from outside ddlrun, and not for lack of memory in cgroup " + cgroup_ +
         " (no out-of-memory kill since the job began)";
}

}  // namespace ddl::launcher
