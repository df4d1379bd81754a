#include "cli/check_build/capability.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/text_table.h"
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
    Json row{{"heading", one.heading},
             {"name", one.name},
             {"key", one.key},
             {"built", one.built},
             {"available", one.available()}};
    row.update(json_of(one.here));
    json["boxes"].push_back(std::move(row));
  }
  return json;
}

Finding finding_in(const Json& json) {
  return {json.at("works").get<bool>(), json.at("version").get<std::string>(),
          json.at("file").get<std::string>(), json.at("detail").get<std::string>(),
          json.at("remedy").get<std::string>()};
}

constexpr const char* yes_no(bool is_so) { return is_so ? "yes" : "no"; }

/// Version, file, detail and remedy.
std::string description_of(const Finding& here) {
  std::vector<std::string> parts;
  for (const std::string* part : {&here.version, &here.file, &here.detail}) {
    if (!part->empty()) parts.push_back(*part);
  }
  if (!here.remedy.empty()) parts.push_back(here.remedy);
  return join(parts, "; ");
}

/// The text by which hosts are compared. Paths of files, numbers of cores and addresses may differ.
std::string comparable_text(const Capability& one) {
  std::string text = one.available() ? "yes" : "no";
  if (!one.here.version.empty()) text += ", " + one.here.version;
  if (!one.available() && !one.here.detail.empty()) text += ", " + one.here.detail;
  return text;
}

/// The hosts grouped by comparable_text(), the largest group first.
std::vector<std::pair<std::string, std::vector<std::string>>> groups_of(
    const std::vector<HostCapabilities>& hosts, std::size_t index) {
  std::map<std::string, std::vector<std::string>> by_text;
  for (const HostCapabilities& host : hosts) {
    if (index < host.all.size()) by_text[comparable_text(host.all[index])].push_back(host.host);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> groups(by_text.begin(), by_text.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return groups;
}

char mark_of(const std::vector<HostCapabilities>& hosts, std::size_t index) {
  const auto count = std::count_if(hosts.begin(), hosts.end(), [index](const HostCapabilities& host) {
    return index < host.all.size() && host.all[index].available();
  });
  if (count == 0) return ' ';
  return count == std::ssize(hosts) ? 'X' : '/';
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
    for (const Json& one : json.at("boxes")) {
      host.all.push_back({one.at("heading").get<std::string>(), one.at("name").get<std::string>(),
                          one.at("key").get<std::string>(), one.at("built").get<bool>(), finding_in(one)});
    }
    return host;
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kProtocol, error.what());
  }
}

std::string capability_line(const Capability& one) {
  const std::string known = description_of(one.here);
  return fmt::format("{}: built {}, works here {}{}\n", one.name, yes_no(one.built), yes_no(one.here.works),
                     known.empty() ? "" : "  " + known);
}

std::string check_build_text(const std::vector<Capability>& all) {
  std::string available = fmt::format("ddlrun v{}:\n", contract::kVersion);
  TextTable table;
  std::string heading;
  for (const Capability& one : all) {
    if (one.heading != heading) {
      heading = one.heading;
      available += fmt::format("\nAvailable {}:\n", heading);
      table.add({});
      table.add({heading, "built"}, "works here");
    }
    available += fmt::format("    [{}] {}\n", one.available() ? 'X' : ' ', one.name);
    table.add({"    " + one.name, yes_no(one.built), yes_no(one.here.works)}, description_of(one.here));
  }
  return available + table.text();
}

std::string check_build_hosts_text(const std::vector<HostCapabilities>& hosts) {
  if (hosts.empty()) return "";
  std::vector<std::string> names;
  for (const HostCapabilities& host : hosts) names.push_back(host.host);
  std::string text = fmt::format("ddlrun v{} on {}:\n", contract::kVersion, join(names, ", "));
  std::string heading, differences, empty;
  const std::vector<Capability>& all = hosts.front().all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].heading != heading) {
      heading = all[i].heading;
      text += fmt::format("\nAvailable {}:\n", heading);
    }
    const char mark = mark_of(hosts, i);
    text += fmt::format("    [{}] {}\n", mark, all[i].name);
    const auto groups = groups_of(hosts, i);
    if (groups.size() > 1) {
      differences += fmt::format("    {}\n", all[i].name);
      for (const auto& [found, where] : groups)
        differences += fmt::format("        {}: {}\n", join(where, ", "), found);
    } else if (mark == ' ') {
      empty += fmt::format("    {}: {}\n", all[i].name, all[i].here.detail);
    }
  }
  text += differences.empty() ? fmt::format("\nNo differences between {}.\n", counted(hosts.size(), "host"))
                              : "\nDifferences:\n" + differences;
  if (!empty.empty()) text += "\nOn no host:\n" + empty;
  return text;
}

}  // namespace ddl::cli
