// ClusterFacts of scontrol's text: a record a line, in it FIELD=value, separated by blanks.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "base/text.h"
#include "templates/cluster/cluster_facts.h"
#include "templates/cluster/gres.h"
#include "templates/cluster/slurm_time.h"

namespace ddl::templates {
namespace {

/// The fields of a line. Of those that come twice the first counts: what people may write, such as a node's reason, stands
/// behind.
class Record {
 public:
  explicit Record(std::string_view line) {
    for (const std::string_view word : split(line, ' ')) {
      const std::size_t end = word.find('=');
      if (end != std::string_view::npos) fields_.try_emplace(word.substr(0, end), word.substr(end + 1));
    }
  }

  /// "" if there is none.
  std::string_view field(std::string_view name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? std::string_view{} : found->second;
  }

  Result<std::int64_t> number(std::string_view name, std::int64_t most) const {
    const auto number = parse_integer(field(name));
    if (!number || *number < 0 || *number > most) return fail(ErrorCode::kProtocol, unknown(name));
    return *number;
  }
  Result<int> number(std::string_view name) const {
    const auto found = number(name, std::numeric_limits<int>::max());
    if (!found) return fail(found.error());
    return static_cast<int>(*found);
  }

  /// nullopt for the word that stands for none.
  Result<std::optional<int>> limit(std::string_view name, std::string_view none) const {
    if (field(name) == none) return std::optional<int>();
    const auto found = number(name);
    if (!found) return fail(found.error());
    return std::optional<int>(*found);
  }
  Result<std::optional<int>> minutes(std::string_view name) const {
    if (field(name) == "UNLIMITED" || field(name) == "NONE") return std::optional<int>();
    const auto found = slurm_minutes(field(name));
    if (!found) return fail(ErrorCode::kProtocol, unknown(name));
    return found;
  }

  std::vector<std::string> list(std::string_view name) const {
    std::vector<std::string> items;
    if (field(name) == "(null)") return items;
    for (const std::string_view item : split(field(name), ',')) {
      if (!item.empty()) items.emplace_back(item);
    }
    return items;
  }

 private:
  std::string unknown(std::string_view name) const {
    return fields_.contains(name) ? std::string(name) + "=" + std::string(field(name)) + " is not understood"
                                  : "there is no " + std::string(name);
  }
  std::map<std::string_view, std::string_view> fields_;
};

/// Passes a result on to where it belongs.
template <class T>
Status take(Result<T> result, T& target) {
  if (!result) return fail(std::move(result.error()));
  target = *std::move(result);
  return {};
}

Status read_partition(const Record& record, Partition& partition) {
  partition.name = record.field("PartitionName");
  partition.is_default = record.field("Default") == "YES";
  partition.is_up = record.field("State") == "UP";
  DDL_TRY(take(record.limit("MaxNodes", "UNLIMITED"), partition.max_nodes));
  DDL_TRY(take(record.minutes("MaxTime"), partition.max_minutes));
  DDL_TRY(take(record.minutes("DefaultTime"), partition.default_minutes));
  DDL_TRY(take(record.number("TotalNodes"), partition.nodes));
  return take(record.number("TotalCPUs"), partition.cpus);
}

Status read_node(const Record& record, NodeKind& kind) {
  kind.name = record.field("NodeName");
  kind.partitions = record.list("Partitions");
  // Without those set aside for the system; older versions do not tell.
  DDL_TRY(take(record.number(record.field("CPUEfctv").empty() ? "CPUTot" : "CPUEfctv"), kind.cpus));
  kind.gpus = gpus_of_gres(record.field("Gres"));
  DDL_TRY(take(record.number("RealMemory", std::numeric_limits<std::int64_t>::max()), kind.memory_mb));
  kind.features = record.list("AvailableFeatures");
  return {};
}

/// Each line that begins with the field goes to read; what else scontrol says is no record.
Status for_each_record(std::string_view text, std::string_view first_field,
                       const std::function<Status(const Record&)>& read) {
  for (const std::string_view line : split(text, '\n')) {
    const Record record(trim(line));
    const std::string_view name = record.field(first_field);
    if (name.empty()) continue;
    // Names are printed for a person.
    if (std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
      return fail(ErrorCode::kProtocol, "a " + std::string(first_field) + " has control characters");
    auto status = read(record);
    if (!status) return fail(std::move(status.error().during(std::string(name))));
  }
  return {};
}

Result<ClusterFacts> read_facts(std::string_view partitions, std::string_view nodes) {
  if (partitions.size() > kMaxClusterText || nodes.size() > kMaxClusterText)
    return fail(ErrorCode::kProtocol, "it is longer than 16 megabytes");
  ClusterFacts facts;
  DDL_TRY(for_each_record(partitions, "PartitionName", [&](const Record& record) {
    return read_partition(record, facts.partitions.emplace_back());
  }));
  DDL_TRY(for_each_record(nodes, "NodeName", [&](const Record& record) {
    return read_node(record, facts.nodes.emplace_back());
  }));
  if (facts.partitions.empty()) return fail(ErrorCode::kProtocol, "it names no partition");
  facts.nodes = merged(facts.nodes);
  return facts;
}

}  // namespace

Result<ClusterFacts> cluster_facts_from_scontrol(std::string_view partitions, std::string_view nodes) {
  auto facts = read_facts(partitions, nodes);
  if (!facts) return fail(std::move(facts.error().during("reading what scontrol prints")));
  return facts;
}

}  // namespace ddl::templates
