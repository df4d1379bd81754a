// The facts of a cluster, from arbitrary JSON and from arbitrary text of scontrol. Accepted facts can be checked
// against, and are unchanged after they are written as JSON and read again.
#include <cstdint>
#include <string_view>

#include "fuzz/require.h"
#include "templates/cluster/cluster_check.h"
#include "templates/cluster/cluster_facts.h"

namespace {

using ddl::templates::ClusterFacts;

void use(const ClusterFacts& facts) {
  ddl::templates::ClusterRequest request;
  request.nodes = 2;
  request.gpus_per_node = 8;
  request.cpus_per_node = 64;
  request.minutes = 100;
  request.memory_mb_per_node = 1000;
  for (const char* partition : {"", "gpu", "gpu,main"}) {
    request.partition = partition;
    for (const auto& finding : check_against(facts, request))
      require(!finding.rule.empty() && !finding.sentence.empty());
  }
  require(merged(facts.nodes).size() <= facts.nodes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto facts = ddl::templates::cluster_facts_from_json(text)) {
    use(*facts);
    const auto back = ddl::templates::cluster_facts_from_json(cluster_facts_json(*facts));
    require(back && *back == *facts);
  }
  // An empty line separates partitions and nodes.
  const std::size_t gap = text.find("\n\n");
  const std::string_view nodes = gap == std::string_view::npos ? text : text.substr(gap + 2);
  if (const auto facts = ddl::templates::cluster_facts_from_scontrol(text.substr(0, gap), nodes)) use(*facts);
  return 0;
}
