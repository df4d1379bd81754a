// ClusterFacts as JSON, both ways.
#include <algorithm>
#include <initializer_list>
#include <limits>

#include <nlohmann/json.hpp>

#include "templates/cluster/cluster_facts.h"

namespace ddl::templates {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostItems = 200'000;
constexpr std::size_t kLongestName = 256;
constexpr std::int64_t kMostNodes = 1'000'000;

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
  if (text.size() > kLongestName || has_controls) return fail(ErrorCode::kProtocol, "it is no name");
  target = text;
  return {};
}

Status read(const Json& value, bool& target) {
  if (!value.is_boolean()) return fail(ErrorCode::kProtocol, "it is neither true nor false");
  target = value.get<bool>();
  return {};
}

template <class Integer>
Status read_number(const Json& value, Integer& target, std::int64_t most) {
  // The order matters: an unsigned number above the largest signed one would come out negative.
  const bool too_large =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (!value.is_number_integer() || too_large || value.get<std::int64_t>() < 0)
    return fail(ErrorCode::kProtocol, "it is no number from 0 to " + std::to_string(most));
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
  if (!value.is_array() || value.size() > kMostItems)
    return fail(ErrorCode::kProtocol, "it is no list of names");
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
  if (!value.is_object()) return fail(ErrorCode::kProtocol, "it is no object");
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
  if (!value.is_object()) return fail(ErrorCode::kProtocol, "it is no object");
  DDL_TRY(read_member(value, "name", kind.name));
  const Json& count = member(value, "count");
  if (!count.is_null()) {
    // Bounded so that sums of them cannot overflow.
    auto status = read_number(count, kind.count, kMostNodes);
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
  if (!list.is_array() || list.size() > kMostItems)
    return fail(ErrorCode::kProtocol, std::string(key) + ": it is no list");
  for (const Json& item : list) {
    auto status = read(item, target.emplace_back());
    if (!status)
      return fail(std::move(status.error().during(key + (" " + std::to_string(target.size() - 1)))));
  }
  return {};
}

Status read_facts(const Json& json, ClusterFacts& facts) {
  if (!json.is_object()) return fail(ErrorCode::kProtocol, "it is no JSON object");
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
  constexpr char kWhat[] = "reading what the cluster says of itself";
  if (text.size() > kMaxClusterText)
    return fail(Error(ErrorCode::kProtocol, "it is longer than 16 megabytes").during(kWhat));
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  ClusterFacts facts;
  auto status = read_facts(json, facts);
  if (!status) return fail(std::move(status.error().during(kWhat)));
  return facts;
}

}  // namespace ddl::templates
