#include "launcher/elastic/gloo_generations.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace ddl::launcher {
namespace {

constexpr char kPlaceScope[] = "rank_and_size";
constexpr char kAddressScope[] = "worker_addresses";

std::string place_text(const RankPlacement& place) {
  return fmt::format("{},{},{},{},{},{}", place.rank, place.size, place.local_rank, place.local_size,
                     place.cross_rank, place.cross_size);
}

}  // namespace

std::vector<GlooGenerations::LateAnswer> GlooGenerations::begin(const std::vector<Process>& ranks) {
  std::vector<std::string> hosts;
  std::vector<int> nodes;
  for (const Process& process : ranks) {
    const auto host = std::find(hosts.begin(), hosts.end(), process.host);
    nodes.push_back(static_cast<int>(host - hosts.begin()));
    if (host == hosts.end()) hosts.push_back(process.host);
  }
  ranks_ = ranks;
  places_ = rank_placements(nodes);
  const GlooShape shape = gloo_shape(places_, hosts);
  expected_ = {"global"};
  for (const auto& [host, size] : shape.local_sizes) expected_.insert("local_" + host);
  for (int local_rank = 0; local_rank < std::ssize(shape.cross_sizes); ++local_rank)
    expected_.insert(fmt::format("cross_{}", local_rank));
  store_ = GlooStore(shape);

  const auto waiting = std::exchange(waiting_, {});
  std::vector<LateAnswer> answers;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto asked = waiting.find(ranks_[rank].member);
    if (asked != waiting.end())
      answers.push_back({asked->second.launch, asked->second.id, {200, place_text(places_[rank])}});
  }
  return answers;
}

GlooGenerations::Reply GlooGenerations::ask(int launch, std::int64_t id, const GlooRequest& request) {
  if (request.scope == kAddressScope) return {GlooAnswer{}, {}};
  if (request.scope == kPlaceScope && request.method == GlooMethod::kGet)
    return join(launch, id, request.key);
  // Each rank sends it after a barrier of all that are in the context.
  if (request.method == GlooMethod::kDelete) expected_.erase(request.scope);
  return {store_.apply(request), {}};
}

GlooGenerations::Reply GlooGenerations::join(int launch, std::int64_t id, const std::string& key) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Process& process = ranks_[rank];
    // The name may have colons, too.
    if (process.launch != launch || key != fmt::format("{}:{}", process.host, places_[rank].local_rank))
      continue;
    waiting_[process.member] = {launch, id};
    return {{}, process.member};
  }
  return {
      GlooAnswer{400, fmt::format("there is no rank {} in this generation; check that HOROVOD_HOSTNAME and "
                                  "HOROVOD_LOCAL_RANK are those that ddlrun and Horovod have set",
                                  key)},
      {}};
}

bool GlooGenerations::have_met() const { return !ranks_.empty() && expected_.empty(); }

}  // namespace ddl::launcher
