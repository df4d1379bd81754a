#include "cli/check_build/capability.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "contract/version.h"

namespace ddl::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json json_of(const Finding& here) {
  return {{"works", here.works},
          {"version", here.version},
          {"file", here.file},
          {"detail", here.detail},
          {"remedy", here.remedy}};
}

Json json_of(const std::vector<Capability>& all, const std::string& host) {
  Json json{
      {"ddlrun", contract::kVersion}, {"kind", "check_build"}, {"host", host}, {"boxes", Json::array()}};
  for (const Capability& one : all) {
    Json box{{"heading", one.heading},
             {"name", one.name},
             {"key", one.key},
             {"built", one.built},
             {"available", one.available()}};
    box.update(json_of(one.here));
    json["boxes"].push_back(std::move(box));
  }
  return json;
}

Finding finding_in(const Json& json) {
  return {json.at("works").get<bool>(), json.at("version").get<std::string>(),
          json.at("file").get<std::string>(), json.at("detail").get<std::string>(),
          json.at("remedy").get<std::string>()};
}

}  // namespace

std::string to_text(const Finding& finding) { return line_of(json_of(finding)); }

Result<Finding> finding_of(std::string_view text) {
  try {
    return finding_in(Json::parse(text));
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kProtocol, error.what());
  }
}

std::string check_build_json(const std::vector<Capability>& all, const std::string& host) {
  return line_of(json_of(all, host)) + "\n";
}

std::string check_build_hosts_json(const std::vector<HostCapabilities>& hosts) {
  Json json{{"ddlrun", contract::kVersion}, {"kind", "check_build_hosts"}, {"hosts", Json::array()}};
  for (const HostCapabilities& host : hosts) json["hosts"].push_back(json_of(host.all, host.host));
  return line_of(json) + "\n";
}

Result<HostCapabilities> read_check_build(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    HostCapabilities host{json.at("host").get<std::string>(), {}};
    for (const Json& box : json.at("boxes")) {
      host.all.push_back({box.at("heading").get<std::string>(), box.at("name").get<std::string>(),
                          box.at("key").get<std::string>(), box.at("built").get<bool>(), finding_in(box)});
    }
    return host;
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kProtocol, error.what());
  }
}

namespace {

constexpr const char* yes_no(bool is_so) { return is_so ? "yes" : "no"; }

/// Version, file, and what else is to be said.
std::string told(const Finding& here) {
  std::vector<std::string> parts;
  for (const std::string* part : {&here.version, &here.file, &here.detail}) {
    if (!part->empty()) parts.push_back(*part);
  }
  if (!here.remedy.empty()) parts.push_back(here.remedy);
  return join(parts, "; ");
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string capability_line(const Capability& one) {
  return without_trailing_blanks(fmt::format("{}: built {}, works here {}  {}", one.name, yes_no(one.built),
                                             yes_no(one.here.works), told(one.here))) +
         "\n";
}

std::string check_build_text(const std::vector<Capability>& all) {
  std::string boxes = fmt::format("ddlrun v{}:\n", contract::kVersion);
  std::string table;
  std::string heading;
  std::size_t widest = 0;
  for (const Capability& one : all) widest = std::max(widest, one.name.size());
  for (const Capability& one : all) {
    if (one.heading != heading) {
      heading = one.heading;
      boxes += fmt::format("\nAvailable {}:\n", heading);
      table += fmt::format("\n{:<{}}  built  works here\n", heading, widest + 4);
    }
    boxes += fmt::format("    [{}] {}\n", one.available() ? 'X' : ' ', one.name);
    table += without_trailing_blanks(fmt::format("    {:<{}}  {:<5}  {:<3}  {}", one.name, widest,
                                                 yes_no(one.built), yes_no(one.here.works), told(one.here))) +
             "\n";
  }
  return boxes + table;
}

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
