#include "cli/reports/check_hosts_report.h"
#include "cli/reports/job_report.h"

#include <nlohmann/json.hpp>

#include "base/printable_text.h"
#include "base/text.h"
#include "base/text_table.h"
#include "contract/version.h"

namespace ddl::cli {

using launcher::HostCheck;
using launcher::NodeFacts;
using Json = nlohmann::ordered_json;

namespace {

Json size_or_null(std::int64_t size) { return size < 0 ? Json(nullptr) : Json(size); }

Json addresses_json(const NodeFacts& facts) {
  Json json = Json::array();
  for (const launcher::NodeAddress& one : facts.addresses) {
    json.push_back(Json{{"interface", one.interface}, {"address", one.address}, {"family", one.family}});
  }
  return json;
}

Json gpus_json(const affinity::Topology& topology) {
  Json json = Json::array();
  for (const affinity::Gpu& gpu : topology.gpus) {
    json.push_back(Json{{"index", gpu.index},
                        {"vendor", affinity::name_of(gpu.vendor)},
                        {"bus_id", text_or_null(gpu.bus_id)},
                        {"cpus", text_or_null(gpu.local_cpus.list())}});
  }
  return json;
}

void add_facts(Json& json, const NodeFacts& facts) {
  json["hostname"] = facts.hostname;
  json["version"] = facts.version;
  json["kernel"] = facts.kernel;
  json["architecture"] = facts.architecture;
  json["cores"] = facts.allowed_cores;
  json["cpus"] = facts.allowed_cpus;
  json["allowed_cpus"] = text_or_null(facts.topology.allowed.list());
  json["numa_nodes"] = facts.topology.numa_nodes.size();
  json["l3s"] = facts.topology.l3s.size();
  json["gpus"] = gpus_json(facts.topology);
  json["memory_bytes"] = facts.memory_bytes;
  json["memory_available_bytes"] = facts.memory_available_bytes;
  json["memlock_bytes"] = size_or_null(facts.memlock_bytes);
  json["nofile"] = size_or_null(facts.nofile);
  json["shm_free_bytes"] = size_or_null(facts.shm_free_bytes);
  json["tmp_directory"] = facts.tmp_directory;
  json["tmp_free_bytes"] = size_or_null(facts.tmp_free_bytes);
  json["libddl"] = text_or_null(facts.libddl);
  json["addresses"] = addresses_json(facts);
}

}  // namespace

std::string check_hosts_text(const std::vector<HostCheck>& hosts, const launcher::HostComparison& comparison,
                             const TerminalStyle& style) {
  TextTable table;
  std::vector<std::string> headings{"host"};
  for (const launcher::HostColumn& column : comparison.columns) headings.push_back(column.heading);
  table.add(std::move(headings));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    std::vector<std::string> row{printable_line(hosts[i].name)};
    if (!hosts[i].facts) {
      table.add(std::move(row), style.alarm("failed:") + " " + printable_text(hosts[i].failure));
      continue;
    }
    for (const launcher::HostColumn& column : comparison.columns) {
      const std::string value = printable_line(column.values[i].text);
      row.push_back(column.values[i].noticed ? style.alarm(value + "!") : value);
    }
    table.add(std::move(row));
  }
  std::string text = table.text();
  if (!comparison.remarks.empty()) text += "\n";
  for (const std::string& remark : comparison.remarks) text += printable_text(remark) + "\n";
  const auto count = std::ssize(hosts);
  text += "\n" + (comparison.failed == 0 ? counted(count, "host") + " answered\n"
                                         : std::to_string(count - comparison.failed) + " of " +
                                               counted(count, "host") + " answered\n");
  return text;
}

std::string check_hosts_json(const std::vector<HostCheck>& hosts,
                             const launcher::HostComparison& comparison) {
  Json json;
  json["ddlrun"] = contract::kVersion;
  json["kind"] = "check_hosts";
  json["failed"] = comparison.failed;
  json["remarks"] = comparison.remarks;
  json["hosts"] = Json::array();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    Json host;
    host["name"] = hosts[i].name;
    host["reachable"] = hosts[i].facts.has_value();
    host["failure"] = text_or_null(hosts[i].failure);
    if (hosts[i].facts) {
      host["answer_seconds"] = hosts[i].answer_seconds;
      host["clock_offset_seconds"] = hosts[i].clock_offset_seconds;
      add_facts(host, *hosts[i].facts);
      host["noticed"] = Json::array();
      for (const launcher::HostColumn& column : comparison.columns) {
        if (column.values[i].noticed) host["noticed"].push_back(column.name);
      }
    }
    json["hosts"].push_back(std::move(host));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ddl::cli
