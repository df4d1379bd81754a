#include "templates/script/batch_job.h"

#include <algorithm>

#include "affinity/output/binding_text.h"
#include "affinity/plan/planner.h"
#include "affinity/plan/usable_cores.h"
#include "base/text.h"

namespace ddl::templates {
namespace {

int divide_up(int a, int b) { return (a + b - 1) / b; }

/// "train" of "python3 -u ../train.py --epochs 3": what a person would call the job.
std::string name_of(const std::vector<std::string>& command) {
  const auto file_name = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  std::string_view name = file_name(command.front());
  if (name.starts_with("python")) {
    const auto script = std::find_if(command.begin() + 1, command.end(),
                                     [](std::string_view word) { return word.ends_with(".py"); });
    if (script != command.end()) name = file_name(*script);
  }
  name = name.substr(0, name.rfind('.'));
  std::string kept;
  for (const char c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_plain || c == '-' || c == '_' || c == '.') kept += c;
  }
  return kept.empty() ? "ddlrun" : kept;
}

/// From a request to a job, in the order in which one thing follows from another.
class JobMaker {
 public:
  JobMaker(const ScriptRequest& request, const SiteProfile* site) : request_(request), site_(site) {}

  Result<BatchJob> make() {
    DDL_TRY(check_account());
    DDL_TRY(size());
    gpus();
    cpus();
    DDL_TRY(memory());
    job_.partition =
        request_.partition.empty() && site_ != nullptr ? site_->slurm.partition : request_.partition;
    job_.job_name = request_.job_name.empty() ? name_of(request_.command) : request_.job_name;
    job_.output = !request_.output.empty() ? request_.output
                  : request_.array.empty() ? "%x-%j.out"
                                           : "%x-%A_%a.out";
    job_.gpu_choice =
        request_.gpu_choice.value_or(site_ != nullptr ? site_->slurm.gpu_choice : GpuChoice::kVisibleDevices);
    if (site_ != nullptr && site_->node && !site_->node->gpu_numa.empty())
      job_.gpu_vendor = site_->node->gpu_vendor;
    mpi_type();
    DDL_TRY(binding());
    DDL_TRY(check_srun());
    return std::move(job_);
  }

 private:
  bool by_srun() const { return request_.launcher == ScriptLauncher::kSrun; }

  Status check_account() {
    if (site_ == nullptr || !site_->slurm.account_required || !request_.account.empty()) return {};
    return refuse(site_->name + " takes no job without an account: --account PROJECT");
  }

  int site_gpus() const {
    if (site_ == nullptr || site_->slurm.gpu_request == GpuRequest::kNone) return 0;
    if (site_->slurm.gpus_per_node > 0) return site_->slurm.gpus_per_node;
    return site_->node ? static_cast<int>(site_->node->gpu_numa.size()) : 0;
  }

  Status size() {
    job_.num_proc = request_.num_proc;
    job_.nodes = request_.nodes;
    int& per_node = job_.tasks_per_node;
    const int node_gpus = request_.gpus_per_node.value_or(site_gpus());
    if (request_.ranks_per_node > 0) {
      per_node = request_.ranks_per_node;
    } else if (job_.num_proc > 0 && job_.nodes > 0) {
      per_node = divide_up(job_.num_proc, job_.nodes);
    } else if (node_gpus > 0) {
      per_node = std::max(node_gpus * ranks_per_gpu() / gpus_per_rank(), 1);
      if (job_.num_proc > 0) per_node = std::min(per_node, job_.num_proc);
    }
    if (job_.nodes == 0 && job_.num_proc > 0 && per_node > 0) job_.nodes = divide_up(job_.num_proc, per_node);
    if (job_.num_proc == 0 && job_.nodes > 0 && per_node > 0) job_.num_proc = job_.nodes * per_node;
    if (job_.num_proc == 0)
      return refuse("how many ranks is not known: -np N, or --nodes N with --ranks-per-node N");
    if (per_node > 0 && job_.num_proc > job_.nodes * per_node)
      return refuse("-np " + std::to_string(job_.num_proc) + " is more than " + counted(job_.nodes, "node") +
                    " of " + counted(per_node, "rank") + " hold");
    if (job_.nodes > job_.num_proc)
      return refuse("--nodes " + std::to_string(job_.nodes) + " is more than the " +
                    counted(job_.num_proc, "rank") + " that are to run there");
    return {};
  }

  int ranks_per_gpu() const { return std::max(request_.binding.ranks_per_gpu, 1); }
  int gpus_per_rank() const { return std::max(request_.binding.gpus_per_rank, 1); }

  bool has_whole_nodes() const {
    return request_.exclusive || (site_ != nullptr && site_->slurm.whole_nodes);
  }

  void gpus() {
    if (request_.gpus_per_node) {
      job_.gpus_per_node = used_gpus_ = *request_.gpus_per_node;
      return;
    }
    const bool has_gpus = site_ != nullptr && site_->slurm.gpu_request != GpuRequest::kNone;
    if (!has_gpus || job_.tasks_per_node == 0) return;
    used_gpus_ = divide_up(job_.tasks_per_node * gpus_per_rank(), ranks_per_gpu());
    if (site_gpus() > 0) used_gpus_ = std::min(used_gpus_, site_gpus());
    // Of a whole node all, so that the plan's are among them.
    job_.gpus_per_node = has_whole_nodes() && site_gpus() > 0 ? site_gpus() : used_gpus_;
  }

  /// What is published is a rank's or the node's; ranks that share GPUs part what belongs to these.
  void cpus() {
    const int ranks = job_.tasks_per_node;
    int& cpus = job_.cpus_per_task;
    cpus = request_.binding.cores_per_rank;
    if (cpus > 0 || site_ == nullptr || ranks == 0) return;
    if (site_->slurm.cpus_per_task > 0) {
      cpus = site_->slurm.cpus_per_task * (used_gpus_ > 0 ? used_gpus_ : ranks) / ranks;
    } else if (const auto topology = node_topology()) {
      const int cores = static_cast<int>(affinity::usable_cores(*topology, request_.binding).cores.size());
      cpus = (used_gpus_ > 0 && site_gpus() > 0 ? cores / site_gpus() * used_gpus_ : cores) / ranks;
    } else {
      return;
    }
    cpus = std::max(cpus, 1);
  }

  std::optional<affinity::Topology> node_topology() const {
    if (site_ == nullptr || !site_->node) return std::nullopt;
    auto topology = affinity::topology_of_model(*site_->node, site_->name);
    return topology ? std::optional(*std::move(topology)) : std::nullopt;
  }

  Status memory() {
    job_.memory = request_.memory;
    if (!request_.memory.empty() || !request_.memory_per_cpu.empty() || !request_.memory_per_gpu.empty() ||
        site_ == nullptr)
      return {};
    if (site_->slurm.memory_required)
      return refuse(site_->name +
                    " takes no job that does not say how much memory: --mem-per-cpu 4G, for example");
    const int node_gpus = site_gpus();
    if (site_->slurm.memory_gb > 0 && node_gpus > 0 && job_.gpus_per_node > 0)
      job_.memory = std::to_string(site_->slurm.memory_gb * job_.gpus_per_node / node_gpus) + "G";
    return {};
  }

  void mpi_type() {
    job_.mpi_type = request_.mpi_type;
    if (!by_srun() || !job_.mpi_type.empty()) return;
    const auto known = site_ != nullptr ? site_->slurm.mpi_types : std::vector<std::string>();
    if (known.empty()) {
      job_.notes.emplace_back(
          "which kinds of MPI the srun there knows is not known here, so the script leaves it to the site's "
          "default; if "
          "srun --mpi=list shows pmix: --mpi-type pmix");
      return;
    }
    const bool has_pmix = std::find(known.begin(), known.end(), "pmix") != known.end();
    job_.mpi_type = has_pmix ? "pmix" : known.front();
    if (!has_pmix)
      job_.notes.push_back("srun of " + site_->name +
                           " has no PMIx, so ranks of libddl find each other there only " +
                           "under ddlrun; the script says --mpi=" + job_.mpi_type);
  }

  Status binding() {
    std::vector<std::vector<int>> gpus_by_rank = gpus_in_order();
    DDL_TRY(bind(gpus_by_rank));
    choose_gpus(gpus_by_rank);
    return {};
  }

  /// Without a plan: rank after rank, GPU after GPU.
  std::vector<std::vector<int>> gpus_in_order() const {
    std::vector<std::vector<int>> by_rank;
    const int gpus = job_.gpus_per_node;
    if (gpus == 0 || job_.tasks_per_node == 0) return by_rank;
    for (int rank = 0; rank < job_.tasks_per_node; ++rank) {
      auto& own = by_rank.emplace_back();
      for (int i = 0; i < gpus_per_rank(); ++i) {
        const int first =
            request_.binding.gpus_per_rank > 0 ? rank * gpus_per_rank() : rank * gpus / job_.tasks_per_node;
        if (first + i < gpus) own.push_back(first + i);
      }
    }
    return by_rank;
  }

  void choose_gpus(const std::vector<std::vector<int>>& by_rank) {
    std::vector<std::string> masks;
    bool is_one_each = true;
    for (const std::vector<int>& gpus : by_rank) {
      if (gpus.empty()) return job_.gpus_of_ranks.clear();
      std::vector<std::string> indices;
      affinity::CpuSet mask;
      for (const int gpu : gpus) {
        indices.push_back(std::to_string(gpu));
        mask.add(gpu);
      }
      is_one_each = is_one_each && gpus.size() == 1;
      job_.gpus_of_ranks.push_back(join(indices, ","));
      masks.push_back(mask.mask());
    }
    if (!by_rank.empty())
      job_.gpu_bind = is_one_each ? "map:" + join(job_.gpus_of_ranks, ",") : "mask:" + join(masks, ",");
  }

  Status bind(std::vector<std::vector<int>>& gpus_by_rank) {
    const auto topology = node_topology();
    if (!topology || job_.tasks_per_node == 0 || !has_whole_nodes()) return {};
    if (request_.binding.bind_to == affinity::BindTo::kNone) return {};
    affinity::BindingPolicy policy = request_.binding;
    if (!request_.has_rank_order) policy.rank_order = site_->rank_order;
    const auto plan = affinity::plan_binding(*topology, policy, job_.tasks_per_node);
    if (!plan) return refuse("on the nodes of " + site_->name + ": " + plan.error().message());
    BatchBinding& binding = job_.binding.emplace();
    binding.map_cpu = affinity::as_map_cpu(*plan);
    binding.mask_cpu = affinity::as_mask_cpu(*plan);
    gpus_by_rank.clear();
    for (const affinity::RankBinding& rank : plan->ranks) {
      auto& gpus = gpus_by_rank.emplace_back();
      for (const affinity::AssignedGpu& gpu : rank.gpus) gpus.push_back(gpu.index);
    }
    for (const std::string& warning : plan->warnings) job_.notes.push_back(warning);
    return {};
  }

  Status check_srun() {
    if (!by_srun() || job_.tasks_per_node == 0 || job_.num_proc == job_.nodes * job_.tasks_per_node)
      return {};
    return refuse("srun places as many ranks on each node, and " + counted(job_.num_proc, "rank") + " on " +
                  counted(job_.nodes, "node") +
                  " do not part evenly: choose another -np, or let ddlrun start them");
  }

  const ScriptRequest& request_;
  const SiteProfile* site_;
  BatchJob job_;
  int used_gpus_ = 0;  // of each node, by its ranks
};

}  // namespace

Result<BatchJob> make_batch_job(const ScriptRequest& request, const SiteProfile* site) {
  return JobMaker(request, site).make();
}

}  // namespace ddl::templates
