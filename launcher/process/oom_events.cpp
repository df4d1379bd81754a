#include "launcher/process/oom_events.h"

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

OomEvents OomEvents::watch() {
  OomEvents events;
  const auto mountinfo = read_file("/proc/self/mountinfo");
  const auto cgroups = read_file("/proc/self/cgroup");
  if (!mountinfo || !cgroups) {
    events.problem_ = "/proc cannot be read";
    return events;
  }
  // v1 first: on hybrid systems the memory controller is there and the v2 tree is mounted without it.
  for (const bool v2 : {false, true}) {
    const auto mount = find_mount(*mountinfo, v2);
    const auto path = find_path(*cgroups, v2);
    if (!mount || !path) continue;
    const std::string below = below_mount_root(*path, mount->root);
    const std::string file =
        mount->point + (below == "/" ? "" : below) + (v2 ? "/memory.events" : "/memory.oom_control");
    const auto text = read_file(file);
    events.before_ = text ? parse_oom_kills(*text) : std::nullopt;
    if (!events.before_) {
      events.problem_ = text ? file + " counts none" : text.error().message();
      continue;
    }
    events.file_ = file;
    events.cgroup_ = below;
    return events;
  }
  constexpr std::string_view kNone = "no memory cgroup with a counter of out-of-memory kills is visible here";
  events.problem_ = std::string(kNone) + (events.problem_.empty() ? "" : " (" + events.problem_ + ")");
  return events;
}

std::string OomEvents::explain_kill() const {
  if (!before_)
    return "killed from outside, perhaps for lack of memory; ddlrun cannot find out, because " + problem_;
  const auto text = read_file(file_);
  const auto now = text ? parse_oom_kills(*text) : std::nullopt;
  if (!now) return "killed from outside; " + file_ + " can no longer be read";
  if (*now > *before_) {
    return "killed by the kernel for lack of memory: cgroup " + cgroup_ + " counts " +
           counted(*now - *before_, "out-of-memory kill") +
           " since the job began; use fewer ranks, a smaller batch, or a higher memory limit";
  }
  return "killed from outside ddlrun, and not for lack of memory in cgroup " + cgroup_ +
         " (no out-of-memory kill since the job began)";
}

}  // namespace ddl::launcher
