#include "templates/cluster/cluster_facts.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "templates/cluster/slurm_values.h"

namespace ddl::templates {

std::vector<NodeKind> merged(const std::vector<NodeKind>& kinds) {
  std::vector<NodeKind> result;
  const auto key_of = [](const NodeKind& kind) {
    return std::make_tuple(kind.partitions, kind.cpus, kind.gpus, kind.memory_mb, kind.features);
  };
  std::map<decltype(key_of(kinds.front())), std::size_t> places;
  for (const NodeKind& kind : kinds) {
    const auto [place, is_new] = places.try_emplace(key_of(kind), result.size());
    if (is_new) {
      result.push_back(kind);
    } else {
      result[place->second].count += kind.count;
    }
  }
  return result;
}

// ClusterFacts as JSON, both ways.
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxItems = 200'000;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::int64_t kMaxNodes = 1'000'000;

Json number_or_null(const std::optional<int>& number) { return number ? Json(*number) : Json(nullptr); }

/// A member of an object; null if it is not there.
const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

/// A name is printed for a person: no control characters.
Status read(const Json& value, std::string& target) {
  if (!value.is_string()) return fail(ErrorCode::kProtocol, "it is not a string");
  const auto& text = value.get_ref<const std::string&>();
  const bool has_controls = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
  });
  if (text.size() > kMaxNameBytes || has_controls) return fail(ErrorCode::kProtocol, "it is not a name");
  target = text;
  return {};
}

Status read(const Json& value, bool& target) {
  if (!value.is_boolean()) return fail(ErrorCode::kProtocol, "it is neither true nor false");
  target = value.get<bool>();
  return {};
}

template <class Integer>
Status read_number(const Json& value, Integer& target, std::int64_t max) {
  // The order matters: an unsigned number above the largest signed one would come out negative.
  const bool too_large =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(max);
  if (!value.is_number_integer() || too_large || value.get<std::int64_t>() < 0)
    return fail(ErrorCode::kProtocol, "it is not a number from 0 to " + std::to_string(max));
  target = static_cast<Integer>(value.get<std::int64_t>());
  return {};
}

Status read(const Json& value, int& target) {
  return read_number(value, target, std::numeric_limits<int>::max());
}

Status read(const Json& value, std::int64_t& target) {
  return read_number(value, target, std::numeric_limits<std::int64_t>::max());
}

Status read(const Json& value, std::optional<int>& target) {
  if (value.is_null()) return {};
  return read(value, target.emplace());
}

Status read(const Json& value, std::vector<std::string>& target) {
  if (!value.is_array() || value.size() > kMaxItems)
    return fail(ErrorCode::kProtocol, "it is not a list of names");
  for (const Json& item : value) DDL_TRY(read(item, target.emplace_back()));
  return {};
}

template <class T>
Status read_member(const Json& object, const char* key, T& target) {
  auto status = read(member(object, key), target);
  if (!status) return fail(std::move(status.error().during(key)));
  return status;
}

Status read(const Json& value, Partition& partition) {
  if (!value.is_object()) return fail(ErrorCode::kProtocol, "it is not an object");
  DDL_TRY(read_member(value, "name", partition.name));
  DDL_TRY(read_member(value, "is_default", partition.is_default));
  DDL_TRY(read_member(value, "is_up", partition.is_up));
  DDL_TRY(read_member(value, "max_nodes", partition.max_nodes));
  DDL_TRY(read_member(value, "max_minutes", partition.max_minutes));
  DDL_TRY(read_member(value, "default_minutes", partition.default_minutes));
  DDL_TRY(read_member(value, "nodes", partition.nodes));
  return read_member(value, "cpus", partition.cpus);
}

Status read(const Json& value, NodeKind& kind) {
  if (!value.is_object()) return fail(ErrorCode::kProtocol, "it is not an object");
  DDL_TRY(read_member(value, "name", kind.name));
  const Json& count = member(value, "count");
  if (!count.is_null()) {
    // Bounded so that sums of them cannot overflow.
    auto status = read_number(count, kind.count, kMaxNodes);
    if (!status) return fail(std::move(status.error().during("count")));
  }
  DDL_TRY(read_member(value, "partitions", kind.partitions));
  DDL_TRY(read_member(value, "cpus", kind.cpus));
  DDL_TRY(read_member(value, "gpus", kind.gpus));
  DDL_TRY(read_member(value, "memory_mb", kind.memory_mb));
  return read_member(value, "features", kind.features);
}

template <class T>
Status read_list(const Json& object, const char* key, std::vector<T>& target) {
  const Json& list = member(object, key);
  if (!list.is_array() || list.size() > kMaxItems)
    return fail(ErrorCode::kProtocol, std::string(key) + ": it is not a list");
  for (const Json& item : list) {
    auto status = read(item, target.emplace_back());
    if (!status)
      return fail(std::move(status.error().during(key + (" " + std::to_string(target.size() - 1)))));
  }
  return {};
}

Status read_facts(const Json& json, ClusterFacts& facts) {
  if (!json.is_object()) return fail(ErrorCode::kProtocol, "it is not a JSON object");
  DDL_TRY(read_member(json, "cluster", facts.name));
  DDL_TRY(read_member(json, "version", facts.version));
  DDL_TRY(read_list(json, "partitions", facts.partitions));
  return read_list(json, "nodes", facts.nodes);
}

}  // namespace

std::string cluster_facts_json(const ClusterFacts& facts) {
  Json json{{"cluster", facts.name}, {"version", facts.version}};
  Json& partitions = json["partitions"] = Json::array();
  for (const Partition& partition : facts.partitions) {
    partitions.push_back(Json{{"name", partition.name},
                              {"is_default", partition.is_default},
                              {"is_up", partition.is_up},
                              {"max_nodes", number_or_null(partition.max_nodes)},
                              {"max_minutes", number_or_null(partition.max_minutes)},
                              {"default_minutes", number_or_null(partition.default_minutes)},
                              {"nodes", partition.nodes},
                              {"cpus", partition.cpus}});
  }
  Json& nodes = json["nodes"] = Json::array();
  for (const NodeKind& kind : facts.nodes) {
    nodes.push_back(Json{{"name", kind.name},
                         {"count", kind.count},
                         {"partitions", kind.partitions},
                         {"cpus", kind.cpus},
                         {"gpus", kind.gpus},
                         {"memory_mb", kind.memory_mb},
                         {"features", kind.features}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<ClusterFacts> cluster_facts_from_json(std::string_view text) {
  constexpr char kWhat[] = "reading what the cluster reports about itself";
  if (text.size() > kMaxClusterText)
    return fail(Error(ErrorCode::kProtocol, "it is longer than 16 megabytes").during(kWhat));
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  ClusterFacts facts;
  auto status = read_facts(json, facts);
  if (!status) return fail(std::move(status.error().during(kWhat)));
  return facts;
}

// ClusterFacts from scontrol's text: one record on each line, with FIELD=value separated by blanks.
namespace {

/// The fields of a line. If a field occurs twice, the first counts: free text, such as the reason of a node's state,
/// comes last.
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

  Result<std::int64_t> number(std::string_view name, std::int64_t max) const {
    const auto number = parse_integer(field(name));
    if (!number || *number < 0 || *number > max) return fail(ErrorCode::kProtocol, unknown(name));
    return *number;
  }
  Result<int> number(std::string_view name) const {
    DDL_ASSIGN(found, number(name, std::numeric_limits<int>::max()));
    return static_cast<int>(found);
  }

  /// nullopt for the word that means no limit.
  Result<std::optional<int>> limit(std::string_view name, std::string_view none) const {
    if (field(name) == none) return std::optional<int>();
    DDL_ASSIGN(found, number(name));
    return found;
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

/// Stores a result in its target.
template <class T>
Status take(Result<T> result, T& target) {
  DDL_ASSIGN(value, std::move(result));
  target = std::move(value);
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
  // CPUEfctv does not count CPUs reserved for the system; older versions do not print it.
  DDL_TRY(take(record.number(record.field("CPUEfctv").empty() ? "CPUTot" : "CPUEfctv"), kind.cpus));
  kind.gpus = gpus_of_gres(record.field("Gres"));
  DDL_TRY(take(record.number("RealMemory", std::numeric_limits<std::int64_t>::max()), kind.memory_mb));
  kind.features = record.list("AvailableFeatures");
  return {};
}

/// Calls read for each line that begins with the field; other lines of scontrol are not records.
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
