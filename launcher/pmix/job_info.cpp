#include "launcher/pmix/job_info.h"

#include <pmix.h>
#include <pmix_server.h>

#include <cstdlib>
#include <memory>

#include "base/text.h"

namespace ddl::launcher {
namespace {

struct FreeDeleter {
  void operator()(char* text) const { std::free(text); }
};
using CString = std::unique_ptr<char, FreeDeleter>;

Status pmix_failure(const char* call, pmix_status_t status) {
  if (status == PMIX_SUCCESS) return {};
  return fail(ErrorCode::kSystem, std::string(call) + ": " + PMIx_Error_string(status));
}

std::string rank_list(const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(rank));
  return join(names, ",");
}

}  // namespace

Result<InfoList> job_info(const NodeLaunch& node, const std::string& directory) {
  const auto size = static_cast<std::uint32_t>(node.size);
  const auto& local_ranks = node.node_ranks.at(static_cast<std::size_t>(node.node_index));
  const auto local_size = static_cast<std::uint32_t>(local_ranks.size());

  // "node0,node1" and "0,1;2,3": which nodes there are, and which ranks each one holds.
  std::vector<std::string> rank_lists;
  for (const auto& ranks : node.node_ranks) rank_lists.push_back(rank_list(ranks));
  char* text = nullptr;
  DDL_TRY(
      pmix_failure("PMIx_generate_regex", PMIx_generate_regex(join(node.node_names, ",").c_str(), &text)));
  const CString node_map(text);
  DDL_TRY(pmix_failure("PMIx_generate_ppn", PMIx_generate_ppn(join(rank_lists, ";").c_str(), &text)));
  const CString proc_map(text);

  InfoList infos;
  infos.add_regex(PMIX_NODE_MAP, node_map.get());
  infos.add_regex(PMIX_PROC_MAP, proc_map.get());
  infos.add(PMIX_JOBID, node.job_id);
  infos.add(PMIX_UNIV_SIZE, size);
  infos.add(PMIX_JOB_SIZE, size);
  infos.add(PMIX_MAX_PROCS, size);
  infos.add(PMIX_JOB_NUM_APPS, std::uint32_t{1});
  infos.add(PMIX_NUM_NODES, static_cast<std::uint32_t>(node.node_names.size()));
  infos.add(PMIX_LOCAL_SIZE, local_size);
  infos.add(PMIX_NODE_SIZE, local_size);
  infos.add(PMIX_LOCAL_PEERS, rank_list(local_ranks));
  infos.add_rank(PMIX_LOCALLDR, local_ranks.front());
  infos.add_rank(PMIX_APPLDR, 0);
  infos.add(PMIX_APPNUM, std::uint32_t{0});
  infos.add(PMIX_TMPDIR, directory);
  infos.add(PMIX_NSDIR, directory);

  for (std::size_t index = 0; index < node.node_ranks.size(); ++index) {
    for (std::size_t local = 0; local < node.node_ranks[index].size(); ++local) {
      const int rank = node.node_ranks[index][local];
      InfoList process;
      process.add_rank(PMIX_RANK, rank);
      process.add_rank(PMIX_GLOBAL_RANK, rank);
      process.add_rank(PMIX_APP_RANK, rank);
      process.add(PMIX_APPNUM, std::uint32_t{0});
      process.add_uint16(PMIX_LOCAL_RANK, static_cast<std::uint16_t>(local));
      process.add_uint16(PMIX_NODE_RANK, static_cast<std::uint16_t>(local));
      process.add(PMIX_NODEID, static_cast<std::uint32_t>(index));
      process.add(PMIX_HOSTNAME, node.node_names[index]);
      infos.add_array(PMIX_PROC_DATA, process);
    }
  }
  return infos;
}

}  // namespace ddl::launcher
