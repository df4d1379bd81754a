#include "cli/check_build/host_boxes_text.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "contract/version.h"

namespace ddl::cli {

namespace {

/// What two hosts may have differently without being different: a file's place, numbers of cores, addresses.
std::string told(const Capability& one) {
  std::string text = one.available() ? "yes" : "no";
  if (!one.here.version.empty()) text += ", " + one.here.version;
  if (!one.available() && !one.here.detail.empty()) text += ", " + one.here.detail;
  return text;
}

/// The hosts that say the same, by what they say, those with most hosts first.
std::vector<std::pair<std::string, std::vector<std::string>>> groups_of(
    const std::vector<HostCapabilities>& hosts, std::size_t box) {
  std::map<std::string, std::vector<std::string>> by_text;
  for (const HostCapabilities& host : hosts) {
    if (box < host.all.size()) by_text[told(host.all[box])].push_back(host.host);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> groups(by_text.begin(), by_text.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return groups;
}

char mark_of(const std::vector<HostCapabilities>& hosts, std::size_t box) {
  const auto count = std::count_if(hosts.begin(), hosts.end(), [box](const HostCapabilities& host) {
    return box < host.all.size() && host.all[box].available();
  });
  if (count == 0) return ' ';
  return count == static_cast<std::ptrdiff_t>(hosts.size()) ? 'X' : '/';
}

}  // namespace

std::string check_build_hosts_text(const std::vector<HostCapabilities>& hosts) {
  if (hosts.empty()) return "";
  std::vector<std::string> names;
  for (const HostCapabilities& host : hosts) names.push_back(host.host);
  std::string text = fmt::format("ddlrun v{} on {}:\n", contract::kVersion, join(names, ", "));
  std::string heading, differences, empty;
  const std::vector<Capability>& boxes = hosts.front().all;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (boxes[i].heading != heading) {
      heading = boxes[i].heading;
      text += fmt::format("\nAvailable {}:\n", heading);
    }
    const char mark = mark_of(hosts, i);
    text += fmt::format("    [{}] {}\n", mark, boxes[i].name);
    const auto groups = groups_of(hosts, i);
    if (groups.size() > 1) {
      differences += fmt::format("    {}\n", boxes[i].name);
      for (const auto& [said, where] : groups)
        differences += fmt::format("        {}: {}\n", join(where, ", "), said);
    } else if (mark == ' ') {
      empty += fmt::format("    {}: {}\n", boxes[i].name, boxes[i].here.detail);
    }
  }
  text += differences.empty() ? fmt::format("\nNo differences between {}.\n",
                                            counted(static_cast<std::int64_t>(hosts.size()), "host"))
                              : "\nDifferences:\n" + differences;
  if (!empty.empty()) text += "\nOn no host:\n" + empty;
  return text;
}

}  // namespace ddl::cli
