// Recorded output of rocm-smi, nvidia-smi and lscpu: on an accepted topology a binding can be planned, which gives no
// rank a missing CPU or a CPU of another rank; all other text gives an error of one sentence.
#include <cstdint>
#include <string>

#include "affinity/output/binding_format.h"
#include "affinity/plan/binding_plan.h"
#include "affinity/source/topology_source.h"
#include "fuzz/require.h"

using ddl::CpuSet;
using namespace ddl::affinity;

namespace {

void check_plan(const Topology& node, const BindingPolicy& policy, int ranks) {
  const auto plan = plan_binding(node, policy, ranks);
  if (!plan) return require(!plan.error().message().empty());
  require(plan->ranks.size() == static_cast<std::size_t>(ranks));
  CpuSet taken;
  for (const RankBinding& rank : plan->ranks) {
    require(!rank.cpus.is_empty() && rank.cpus.is_subset_of(node.allowed) && !rank.cpus.intersects(taken));
    taken |= rank.cpus;
  }
  require(!format_binding(node, *plan, BindingFormat::kTable).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto node = topology_of_text({reinterpret_cast<const char*>(data), size}, "the text");
  if (!node) {
    require(node.error().message().find("the text") != std::string::npos);
    return 0;
  }
  // Sets of many thousand CPUs are valid, but slow.
  if (node->cores.empty() || node->cores.size() > 512) return 0;
  require(is_consistent(*node));
  BindingPolicy reserving;
  reserving.reserved.first_core_per_l3 = true;
  for (const int ranks : {1, 2, 7}) {
    check_plan(*node, {}, ranks);
    check_plan(*node, reserving, ranks);
  }
  return 0;
}
