// Reads the options of binding, and those of --show-bind, --explain-bind and --show-topology.
#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/options/option_values.h"
#include "cli/options/readers.h"

namespace ddl::cli {

namespace {

using affinity::BindingPolicy;

Result<affinity::BindTo> bind_to(const std::string& text) {
  // mpirun's words for the same.
  constexpr std::pair<std::string_view, std::string_view> kOfMpirun[] = {
      {"hwthread", "pu"}, {"l3cache", "l3"}, {"package", "socket"}};
  std::string_view word = text;
  for (const auto& [theirs, ours] : kOfMpirun) {
    if (word == theirs) word = ours;
  }
  if (const auto value = affinity::parse_bind_to(word)) return *value;
  if (text.ends_with(":if-supported"))
    return refuse("'" + text +
                  "' is mpirun's; omit the end of it: without --strict-bind ranks start unbound " +
                  "where they cannot be bound");
  if (text.find(":overload-allowed") != std::string::npos)
    return refuse("'" + text + "' is mpirun's; use --oversubscribe for more ranks than slots");
  return refuse_word(text, words_of_value(OptionId::kBindTo));
}

Result<affinity::RankOrder> rank_order(const std::string& text) {
  using enum affinity::RankOrder;
  return one_of<affinity::RankOrder>(text, {{"gpu", kGpu}, {"cpu", kCpu}});
}

Result<affinity::MemoryBinding> memory(const std::string& text) {
  using enum affinity::MemoryBinding;
  return one_of<affinity::MemoryBinding>(text, {{"local", kLocal}, {"none", kNone}});
}

Result<affinity::BindingFormat> format_of(const std::string& text) {
  if (const auto value = affinity::parse_binding_format(text)) return *value;
  return refuse_word(text, words_of_value(OptionId::kFormat));
}

Result<affinity::TopologyFormat> topology_format_of(const std::string& text) {
  if (const auto value = affinity::parse_topology_format(text)) return *value;
  return refuse("'" + text + "' is not text, json or svg, the formats of --show-topology");
}

}  // namespace

void read_binding(ValueReader& values, BindingPolicy& policy) {
  values.take(OptionId::kBindTo, bind_to, policy.bind_to);
  values.take(OptionId::kCoresPerRank, parse_count, policy.cores_per_rank, 1, kMaxCores);
  values.take(OptionId::kRankOrder, rank_order, policy.rank_order);
  values.take(OptionId::kGpusPerRank, parse_count, policy.gpus_per_rank, 1, kMaxGpus);
  values.take(OptionId::kRanksPerGpu, parse_count, policy.ranks_per_gpu, 1, kMaxCores);
  values.take(OptionId::kMemBind, memory, policy.memory);
  policy.smt = values.has(OptionId::kSmt);
  values.take(OptionId::kReserve, affinity::parse_reserved, policy.reserved);
  if (policy.mapping.object != affinity::BindTo::kAuto && policy.bind_to == affinity::BindTo::kGpu)
    values.refuse_once("--map-by " + affinity::text_of(policy.mapping) +
                           " places ranks by CPU, and --bind-to gpu places them by GPU",
                       "omit one of them");
  if (policy.gpus_per_rank > 1 && policy.ranks_per_gpu > 1)
    values.exclude(OptionId::kGpusPerRank, OptionId::kRanksPerGpu);
}

Status read_binding_view(Request& request, const CommandLine& line) {
  const GivenOptions& given = line.given;
  ValueReader values(given);
  BindingView& view = request.binding_view;
  request.has_rank_order = given.has(OptionId::kRankOrder);
  values.take(OptionId::kRanksPerNode, parse_ranks_per_node, request.job.ranks_per_node);
  read_map_by(values, request.job);
  if (given.has(OptionId::kRankfile) || !request.job.rankfile.empty())
    values.refuse_once("a rankfile is for a job, and this plans for one node",
                       "for a job: ddlrun --dry-run --probe --rankfile FILE ./train");
  read_binding(values, request.job.binding);
  request.job.binding.oversubscribe = request.job.oversubscribe || given.has(OptionId::kOversubscribe);
  values.take(OptionId::kNumProc, parse_rank_count, view.local_ranks);
  const int per_node = request.job.ranks_per_node;
  if (per_node > 0) view.local_ranks = view.local_ranks > 0 ? std::min(view.local_ranks, per_node) : per_node;
  values.take(OptionId::kTopology, not_empty, view.topology);
  values.take(OptionId::kSite, not_empty, request.site);
  for (const GivenValue& value : given[OptionId::kTopologyText])
    view.text_files.push_back(values.value_of(OptionId::kTopologyText, value, not_empty(value.text)));
  if (given.has(OptionId::kShowTopology)) {
    view.topology_format = affinity::TopologyFormat::kText;
    values.take(OptionId::kFormat, topology_format_of, view.topology_format);
    if (request.json) view.topology_format = affinity::TopologyFormat::kJson;
  } else {
    if (given.has(OptionId::kExplainBind)) view.format = affinity::BindingFormat::kExplanation;
    values.take(OptionId::kFormat, format_of, view.format);
    if (request.json) view.format = affinity::BindingFormat::kJson;
  }
  values.exclude(OptionId::kTopology, OptionId::kTopologyText);
  values.exclude(OptionId::kSite, OptionId::kTopology);
  values.exclude(OptionId::kSite, OptionId::kTopologyText);
  values.exclude(OptionId::kExplainBind, OptionId::kFormat);
  values.exclude(OptionId::kShowTopology, OptionId::kShowBind);
  values.exclude(OptionId::kShowTopology, OptionId::kExplainBind);
  const std::string typed =
      std::string(canonical_spelling(entry_of(given.has(OptionId::kShowTopology)  ? OptionId::kShowTopology
                                              : given.has(OptionId::kExplainBind) ? OptionId::kExplainBind
                                                                                  : OptionId::kShowBind)));
  values.refuse_given({OptionId::kDryRun, OptionId::kProbe},
                      " is for a job, but " + typed + " is for one node",
                      "for a job: ddlrun --dry-run --probe -np 8 -H node1:4,node2:4 ./train");
  for (const OptionId id : {OptionId::kHosts, OptionId::kHostfile}) {
    if (!given.has(id)) continue;
    values.refuse_once(id, typed + " is for one node, but " + display_name(entry_of(id)) + " names hosts",
                       "run it on the host, or give the host's topology with --topology");
  }
  if (view.local_ranks == 0 && !view.topology_format)
    values.refuse_once("-np is missing: how many ranks on the node?",
                       "for example: ddlrun " + typed + " -np 8");
  return values.status();
}

}  // namespace ddl::cli
