#include "affinity/source/child_query.h"

#include <sys/resource.h>

#include <algorithm>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "affinity/topology_json.h"
#include "base/child_question.h"

namespace ddl::affinity {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VendorGpu, index, bus_id, uuid, model, by_uuid)

namespace {

/// hwloc needs a few megabytes for the largest nodes that exist.
constexpr rlim_t kReadingBytes = rlim_t{1} << 30;

void limit(__rlimit_resource resource, rlim_t max) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return;
  const rlimit lower{std::min(now.rlim_max, max), now.rlim_max};
  ::setrlimit(resource, &lower);
}

/// Sets the child's limits. A sanitizer's shadow memory is larger than any limit.
void limit_reading(std::chrono::seconds patience) {
  limit(RLIMIT_CPU, static_cast<rlim_t>(patience.count()));
  limit(RLIMIT_CORE, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  limit(RLIMIT_AS, kReadingBytes);
#endif
}

template <class T>
std::string answer_of(const std::function<Result<T>()>& ask) {
  const auto found = ask();
  nlohmann::json json;
  if (found) {
    json["found"] = *found;
  } else {
    json["failure"] = found.error().message();
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// kUnavailable: ask() itself has failed; other errors: there is no answer.
template <class T>
Result<T> read_answer(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_object() && json.contains("failure"))
    return fail(ErrorCode::kUnavailable, json.value("failure", ""));
  try {
    return json.at("found").get<T>();
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::kProtocol, "its answer is cut short");
  } catch (const std::out_of_range& error) {
    return fail(ErrorCode::kProtocol, error.what());
  }
}

}  // namespace

Result<std::vector<VendorGpu>> in_child(const std::function<Result<std::vector<VendorGpu>>()>& ask,
                                        std::chrono::milliseconds patience) {
  DDL_ASSIGN(child, ChildQuestion::ask([&ask] { return answer_of(ask); }));
  const auto text = child.answer(Deadline::after(patience));
  if (!text && text.error().code() == ErrorCode::kTimeout)
    return fail(ErrorCode::kTimeout, "no answer within " + std::to_string(patience.count()) + " ms");
  if (!text) return fail(text.error());
  auto gpus = read_answer<std::vector<VendorGpu>>(*text);
  if (!gpus) return fail(ErrorCode::kUnavailable, gpus.error().message());
  return gpus;
}

Result<Topology> topology_in_child(const std::function<Result<Topology>()>& load, const std::string& what,
                                   std::chrono::seconds patience) {
  auto child = ChildQuestion::ask([&] {
    limit_reading(patience);
    return answer_of(load);
  });
  if (!child) return fail(std::move(child.error().during(what)));
  const auto text = child->answer(Deadline::after(patience));
  if (!text) {
    return fail(ErrorCode::kInvalidArgument, what + ": hwloc cannot read it (" + text.error().message() +
                                                 "): it is damaged, or describes more than a node; `lstopo "
                                                 "FILE.xml` on the node writes a good one");
  }
  auto topology = read_answer<Topology>(*text);
  if (topology && is_consistent(*topology)) return topology;
  if (topology) return refuse(what + ": describes no node on which ranks could run");
  if (topology.error().code() == ErrorCode::kUnavailable) return refuse(topology.error().message());
  return refuse(what + ": describes no node on which ranks could run (" + topology.error().message() + ")");
}

}  // namespace ddl::affinity
