#include "templates/script/batch_job.h"

#include <algorithm>

#include "affinity/output/binding_format.h"
#include "affinity/plan/binding_plan.h"
#include "base/text.h"
#include "templates/script/container.h"

namespace ddl::templates {
namespace {

int divide_up(int a, int b) { return (a + b - 1) / b; }

}  // namespace

std::string job_name_of(const std::vector<std::string>& command) {
  const auto file_name = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  std::string_view name = file_name(command.front());
  const bool starts_script =
      name.starts_with("python") || name == "torchrun" || name == "accelerate" || name == "deepspeed";
  if (starts_script) {
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

namespace {

/// Whether the user's own directives ask for GPUs: --gpus=8, -G 8, --gpus-per-socket=1, --gres=gpu:4.
bool ask_for_gpus(const std::vector<std::string>& directives) {
  return std::any_of(directives.begin(), directives.end(), [](const std::string& one) {
    return one.starts_with("--gpus") || one.starts_with("-G") ||
           (one.starts_with("--gres") && !one.starts_with("--gres-flags") &&
            one.find("gpu") != std::string::npos);
  });
}

/// Whether they say which hardware threads the job has: --hint=multithread, --threads-per-core=2.
bool ask_for_threads(const std::vector<std::string>& directives) {
  return std::any_of(directives.begin(), directives.end(), [](const std::string& one) {
    return one.starts_with("--hint") || one.starts_with("--threads-per-core");
  });
}

/// Makes a job from a request, in the order in which one value follows from another.
class JobMaker {
 public:
  JobMaker(const ScriptRequest& request, const SiteProfile* site) : request_(request), site_(site) {
    if (site == nullptr || !site->node) return;
    if (auto topology = affinity::topology_of_model(*site->node, site->name))
      topology_ = *std::move(topology);
  }

  Result<BatchJob> make() {
    DDL_TRY(check_account());
    DDL_TRY(size());
    job_.partition =
        request_.partition.empty() && site_ != nullptr ? site_->slurm.partition : request_.partition;
    job_.constraint =
        request_.constraint.empty() && site_ != nullptr ? site_->slurm.constraint : request_.constraint;
    job_.qos = request_.qos.empty() && site_ != nullptr ? site_->slurm.qos : request_.qos;
    job_.has_whole_nodes = has_whole_nodes();
    DDL_TRY(gpus());
    DDL_TRY(second_threads());
    DDL_TRY(memory());
    job_.job_name = request_.job_name.empty() ? job_name_of(request_.command) : request_.job_name;
    job_.output = !request_.output.empty() ? request_.output
                  : request_.array.empty() ? "%x-%j.out"
                                           : "%x-%A_%a.out";
    job_.gpu_choice =
        request_.gpu_choice.value_or(site_ != nullptr ? site_->slurm.gpu_choice : GpuChoice::kVisibleDevices);
    job_.container_runtime = runtime_of_container(request_, site_);
    DDL_TRY(gpu_vendor());
    DDL_TRY(check_container(request_, job_));
    mpi_type();
    DDL_TRY(plan());
    cpus();
    choose_gpus();
    DDL_TRY(check_gpu_choice());
    DDL_TRY(cpu_bind());
    DDL_TRY(check_srun());
    return std::move(job_);
  }

 private:
  bool by_srun() const { return request_.launcher == ScriptLauncher::kSrun; }

  Status check_account() {
    if (site_ == nullptr) return {};
    if (site_->slurm.account_required && request_.account.empty())
      return refuse(site_->name + " takes no job without an account: --account PROJECT");
    if (site_->slurm.time_required && request_.time_limit.empty())
      return refuse(site_->name + " takes no job without a time: --time 2:00:00, for example");
    return {};
  }

  /// GPUs of a node; 0: none, or unknown.
  int known_gpus() const {
    if (site_ == nullptr) return 0;
    if (site_->slurm.gpus_per_node > 0) return site_->slurm.gpus_per_node;
    return site_->node ? site_->node->gpu_numa.size() : 0;
  }
  bool asks_slurm_for_gpus() const {
    return site_ != nullptr && site_->slurm.gpu_request != GpuRequest::kNone;
  }
  int site_gpus() const { return asks_slurm_for_gpus() ? known_gpus() : 0; }

  /// The option by which the user requests GPUs for ranks; "" if there is none.
  std::string gpu_option() const {
    if (request_.binding.bind_to == affinity::BindTo::kGpu) return "--bind-to gpu";
    if (request_.binding.gpus_per_rank > 0) return "--gpus-per-rank";
    if (request_.binding.ranks_per_gpu > 0) return "--ranks-per-gpu";
    if (request_.gpu_choice) return "--gpu-choice";
    if (!request_.memory_per_gpu.empty()) return "--mem-per-gpu";
    return request_.gpu_vendor && request_.gpus_per_node != 0 ? "--gpu-vendor" : "";
  }

  Status size() {
    job_.num_ranks = request_.num_ranks;
    job_.nodes = request_.nodes;
    int& per_node = job_.tasks_per_node;
    const int node_gpus = request_.gpus_per_node.value_or(known_gpus());
    const int processes = std::max(job_.num_ranks, request_.num_processes);
    if (request_.ranks_per_node > 0 || request_.starts_own_ranks) {
      per_node = std::max(request_.ranks_per_node, 1);
    } else if (job_.num_ranks > 0 && job_.nodes > 0) {
      per_node = divide_up(processes, job_.nodes);
    } else if (node_gpus > 0) {
      per_node = std::max(node_gpus * ranks_per_gpu() / gpus_per_rank(), 1);
      if (job_.num_ranks > 0) per_node = std::min(per_node, processes);
    }
    if (request_.max_nodes > 0) return size_of_range();
    if (job_.nodes == 0 && job_.num_ranks > 0 && per_node > 0) job_.nodes = divide_up(processes, per_node);
    if (job_.num_ranks == 0 && job_.nodes > 0 && per_node > 0) job_.num_ranks = job_.nodes * per_node;
    if (job_.num_ranks == 0)
      return refuse("the number of ranks is unknown: -np N, or --nodes N with --ranks-per-node N");
    if (per_node > 0 && processes > job_.nodes * per_node)
      return refuse("-np " + std::to_string(job_.num_ranks) +
                    (processes > job_.num_ranks
                         ? " with " + counted(processes - job_.num_ranks, "process") + " in reserve"
                         : "") +
                    " is more than " + counted(job_.nodes, "node") + " of " + counted(per_node, "rank") +
                    " hold");
    if (job_.nodes > std::max(job_.num_ranks, processes))
      return refuse("--nodes " + std::to_string(job_.nodes) + " is more than the " +
                    counted(job_.num_ranks, "rank") + " that are to run there");
    return {};
  }

  /// How many ranks there are is known when Slurm has chosen the nodes.
  Status size_of_range() {
    job_.max_nodes = request_.max_nodes;
    const std::string range = "--nodes " + std::to_string(job_.nodes) + "-" + std::to_string(job_.max_nodes);
    if (request_.num_ranks > 0)
      return refuse(
          "with " + range + " the number of ranks is that of the nodes which the job gets, and -np " +
          std::to_string(request_.num_ranks) + " is one number: omit it, and give --ranks-per-node N");
    if (job_.tasks_per_node == 0)
      return refuse("with " + range + " the number of ranks of a node has to be known: --ranks-per-node N");
    return {};
  }

  int ranks_per_gpu() const { return std::max(request_.binding.ranks_per_gpu, 1); }
  int gpus_per_rank() const { return std::max(request_.binding.gpus_per_rank, 1); }

  bool has_whole_nodes() const {
    return request_.exclusive ||
           (site_ != nullptr && gives_whole_nodes(site_->slurm, job_.partition, job_.qos));
  }

  /// A job that is to have GPUs requests them explicitly, or is refused: Slurm would start it without GPUs, and its
  /// ranks would fail, or compute on CPUs.
  Status gpus() {
    const std::string option = gpu_option();
    const bool has_own = ask_for_gpus(request_.directives);
    const int needed = request_.starts_own_ranks
                           ? known_gpus()
                           : divide_up(job_.tasks_per_node * gpus_per_rank(), ranks_per_gpu());
    const bool is_needed = request_.binding.gpus_per_rank > 0 || request_.binding.ranks_per_gpu > 0;
    if (request_.gpus_per_node == 0 && !option.empty())
      return refuse(option + " requests GPUs, and --gpus-per-node 0 requests none: omit one of them");
    if (request_.gpus_per_node) {
      job_.gpus_per_node = used_gpus_ = *request_.gpus_per_node;
    } else if (known_gpus() > 0) {
      if (job_.tasks_per_node == 0) return {};
      used_gpus_ = std::min(needed, known_gpus());
      // All GPUs of a whole node, so that those of the plan are among them.
      if (asks_slurm_for_gpus()) job_.gpus_per_node = job_.has_whole_nodes ? known_gpus() : used_gpus_;
    } else if (has_own) {
      used_gpus_ = job_.tasks_per_node > 0 && is_needed ? needed : 0;
    } else if (asks_slurm_for_gpus() || !option.empty()) {
      const bool is_known = job_.tasks_per_node > 0 && (asks_slurm_for_gpus() || is_needed);
      if (!is_known)
        return refuse(
            (asks_slurm_for_gpus() ? "jobs of " + site_->name + " request GPUs" : option + " requests GPUs") +
            ", and the number of GPUs of a node is unknown: --gpus-per-node N" +
            (option.empty() ? ", or --gpus-per-node 0 for a job without GPUs" : ""));
      job_.gpus_per_node = used_gpus_ = needed;
    }
    job_.gpu_type = request_.gpu_type.empty() && site_ != nullptr ? site_->slurm.gpu_type : request_.gpu_type;
    const int there = request_.gpus_per_node.value_or(known_gpus());
    if (is_needed && there > 0 && needed > there)
      return refuse(counted(job_.tasks_per_node, "rank") + " of a node need " + counted(needed, "GPU") +
                    " by " + option + ", and it has " + std::to_string(there) +
                    (request_.gpus_per_node ? " by --gpus-per-node" : " at " + site_->name));
    job_.has_gpus = job_.gpus_per_node > 0 || has_own || (used_gpus_ > 0 && !request_.gpus_per_node);
    return {};
  }

  /// A container without --nv or --rocm starts and sees no GPU.
  Status gpu_vendor() {
    if (site_ != nullptr) {
      if (site_->node && !site_->node->gpu_numa.empty())
        job_.gpu_vendor = site_->node->gpu_vendor;
      else
        job_.gpu_vendor = site_->slurm.gpu_vendor;
    }
    if (request_.gpu_vendor) job_.gpu_vendor = request_.gpu_vendor;
    if (job_.gpu_vendor || !job_.has_gpus || !needs_gpu_vendor(request_, job_)) return {};
    return refuse(
        "a container needs --nv to see GPUs of NVIDIA, and --rocm for those of AMD, but the vendor of the "
        "GPUs is unknown: --gpu-vendor nvidia, amd or intel");
  }

  /// Where Slurm's CPUs are cores, a job has second hardware threads only if it asks for them.
  bool asks_for_second_threads() const {
    return request_.binding.smt && request_.binding.bind_to != affinity::BindTo::kNone && site_ != nullptr &&
           site_->node && site_->node->threads_per_core > 1 && site_->slurm.cpus_are == SlurmCpus::kCores;
  }

  Status second_threads() {
    if (!asks_for_second_threads() || ask_for_threads(request_.directives)) return {};
    job_.smt_directive = site_->slurm.smt_directive;
    if (!job_.smt_directive.empty()) return {};
    return refuse(
        "jobs of " + site_->name +
        " have second hardware threads only if they ask for them, and the profile does not say how: "
        "omit --smt, or add the option of sbatch, as in --sbatch=--hint=multithread");
  }

  /// How many of Slurm's CPUs a core is. For a job that asks for the second threads each thread is a CPU.
  std::optional<int> cpus_per_core() const {
    if (site_ == nullptr || !site_->node || site_->node->threads_per_core == 1) return 1;
    if (site_->slurm.cpus_are == SlurmCpus::kUnknown) return std::nullopt;
    const bool are_threads = site_->slurm.cpus_are == SlurmCpus::kThreads || asks_for_second_threads();
    return are_threads ? site_->node->threads_per_core : 1;
  }

  /// The part of a node that each of its ranks gets without a plan; 0: not known.
  struct Part {
    int cores = 0;
    int cpus = 0;  // as --cpus-per-task counts
  };
  /// The published number is for one rank or for the node; ranks that share GPUs divide the CPUs of these.
  Part part_of_rank() const {
    const int ranks = job_.tasks_per_node;
    const std::optional<int> known = cpus_per_core();
    const int each = known.value_or(1);
    if (const int cpus = request_.cpus_per_task; cpus > 0) return {std::max(cpus / each, 1), cpus};
    if (const int cores = request_.binding.cores_per_rank; cores > 0) return {cores, cores * each};
    if (site_ == nullptr || ranks == 0) return {};
    if (const int published = site_->slurm.cpus_per_task; published > 0) {
      const int of_one = asks_for_second_threads() ? published * each : published;
      const int cpus = std::max(of_one * (used_gpus_ > 0 ? used_gpus_ : ranks) / ranks, 1);
      return {std::max(cpus / each, 1), cpus};
    }
    if (!topology_) return {};
    const int usable = affinity::usable_cores(*topology_, request_.binding).cores.size();
    const int of_all = used_gpus_ > 0 && known_gpus() > 0 ? usable / known_gpus() * used_gpus_ : usable;
    const int cores = std::max(of_all / ranks, 1);
    // A job that has its nodes to itself can omit a number that may be half or twice the intended one.
    return {cores, known || !job_.has_whole_nodes ? cores * each : 0};
  }

  /// Slurm obeys a list of CPUs only in a step that has all CPUs of the node, and a step with --cpus-per-task has
  /// exactly this number for each rank.
  void cpus() {
    const Part part = part_of_rank();
    job_.threads_per_rank = plan_ ? fewest_threads() : part.cores;
    const bool fits = !by_srun() || !plan_ || part.cpus * job_.tasks_per_node == all_cpus();
    job_.cpus_per_task = fits ? part.cpus : 0;
    if (request_.starts_own_ranks && job_.cpus_per_task == 0 && !job_.has_whole_nodes)
      job_.notes.push_back("the CPUs of a node are not known, so Slurm gives " + request_.command.front() +
                           " its default, which may be one CPU: add --exclusive or --cpus-per-task N");
  }
  int fewest_threads() const {
    return std::ranges::min_element(plan_->ranks, {}, &affinity::RankBinding::threads)->threads;
  }
  int all_cpus() const { return std::ssize(topology_->cores) * cpus_per_core().value_or(0); }

  Status memory() {
    job_.memory = request_.memory;
    if (!request_.memory.empty() || !request_.memory_per_cpu.empty() || !request_.memory_per_gpu.empty() ||
        site_ == nullptr)
      return {};
    if (site_->slurm.memory_required)
      return refuse(site_->name +
                    " takes no job without a request for memory: --mem-per-cpu 4G, for example");
    const int node_gpus = site_gpus();
    if (site_->slurm.memory_gb > 0 && node_gpus > 0 && job_.gpus_per_node > 0)
      job_.memory = std::to_string(site_->slurm.memory_gb * job_.gpus_per_node / node_gpus) + "G";
    return {};
  }

  void mpi_type() {
    job_.mpi_type = request_.mpi_type;
    if (!by_srun() || !job_.mpi_type.empty()) return;
    const auto known = site_ != nullptr ? site_->slurm.mpi_types : std::vector<std::string>();
    if (known.empty() && site_ != nullptr) job_.mpi_type = site_->slurm.mpi_type;
    if (!job_.mpi_type.empty()) return;
    if (known.empty()) {
      job_.notes.emplace_back(
          "the MPI types of the site's srun are unknown, so the script uses the site's default; if srun "
          "--mpi=list names pmix there, add --mpi-type pmix");
      return;
    }
    const bool has_pmix = std::find(known.begin(), known.end(), "pmix") != known.end();
    job_.mpi_type = has_pmix ? "pmix" : known.front();
    if (!has_pmix)
      job_.notes.push_back("srun of " + site_->name +
                           " has no PMIx, so ranks of libddl find each other there only " +
                           "under ddlrun; the script says --mpi=" + job_.mpi_type);
  }

  /// Of a node that is known and that the job has to itself.
  Status plan() {
    if (!topology_ || job_.tasks_per_node == 0 || !job_.has_whole_nodes) return {};
    if (request_.binding.bind_to == affinity::BindTo::kNone) return {};
    const int cpus = request_.cpus_per_task * job_.tasks_per_node;
    if (by_srun() && cpus > 0 && cpus != all_cpus()) return {};
    auto plan = affinity::plan_binding(*topology_, request_.binding, job_.tasks_per_node);
    if (!plan) return refuse("on the nodes of " + site_->name + ": " + plan.error().message());
    plan_ = *std::move(plan);
    job_.binding = {affinity::as_map_cpu(*plan_), affinity::as_mask_cpu(*plan_)};
    for (const std::string& warning : plan_->warnings) job_.notes.push_back(warning);
    return {};
  }

  std::vector<std::vector<int>> gpus_of_plan() const {
    std::vector<std::vector<int>> by_rank;
    for (const affinity::RankBinding& rank : plan_->ranks) {
      auto& own = by_rank.emplace_back();
      for (const affinity::AssignedGpu& gpu : rank.gpus) own.push_back(gpu.index);
    }
    return by_rank;
  }

  /// Without a plan: rank after rank, GPU after GPU.
  std::vector<std::vector<int>> gpus_in_order() const {
    std::vector<std::vector<int>> by_rank;
    const int gpus = std::max(job_.gpus_per_node, used_gpus_);
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

  static bool are_local_ranks(const std::vector<std::vector<int>>& gpus_by_rank) {
    for (int rank = 0; rank < std::ssize(gpus_by_rank); ++rank) {
      if (gpus_by_rank[rank] != std::vector<int>{rank}) return false;
    }
    return true;
  }

  void choose_gpus() {
    if (request_.starts_own_ranks) return;
    const auto by_rank = plan_ ? gpus_of_plan() : gpus_in_order();
    // A program of PyTorch chooses the GPU whose index is its local rank.
    if (request_.torch_variables && !request_.gpu_choice && are_local_ranks(by_rank)) return;
    std::vector<std::string> masks;
    bool is_one_each = true;
    for (const std::vector<int>& gpus : by_rank) {
      if (gpus.empty()) return job_.gpus_of_ranks.clear();
      std::vector<std::string> indices;
      CpuSet mask;
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

  /// The script chooses the GPU of each rank, or a note to the user says that it does not.
  Status check_gpu_choice() {
    const bool sees_all = request_.starts_own_ranks || request_.torch_variables;
    if (!by_srun() || !job_.has_gpus || (sees_all && job_.gpus_of_ranks.empty())) return {};
    if (request_.gpu_choice && job_.gpus_of_ranks.empty())
      return refuse(
          "--gpu-choice needs the numbers of ranks and of GPUs of a node: --nodes N and --gpus-per-node N");
    if (job_.gpu_choice != GpuChoice::kVisibleDevices || job_.gpu_vendor) return {};
    if (request_.gpu_choice)
      return refuse(
          "--gpu-choice visible-devices needs the vendor of the GPUs: --gpu-vendor nvidia, amd or intel");
    job_.notes.emplace_back(
        "the vendor of the GPUs is unknown, so every rank sees all GPUs of its node, and the program has to "
        "choose one; --gpu-vendor nvidia, amd or intel lets the script choose");
    return {};
  }

  /// Without a plan srun binds by itself, if it can do what was requested.
  Status cpu_bind() {
    if (!by_srun() || job_.binding) return {};
    const affinity::BindingPolicy& policy = request_.binding;
    const bool binds = policy.bind_to != affinity::BindTo::kNone;
    const bool reserves = policy.reserved.first_core_per_l3 || !policy.reserved.cpus.is_empty();
    const char* const option = policy.bind_to == affinity::BindTo::kL3 ? "--bind-to l3"
                               : policy.smt && binds                   ? "--smt"
                               : reserves && binds                     ? "--reserve"
                               : request_.has_rank_order && binds      ? "--rank-order"
                                                                       : nullptr;
    if (option != nullptr)
      return refuse(
          std::string(option) +
          " needs a plan of the node, because srun alone cannot do it: give a --site whose profile has a "
          "model of its nodes, --exclusive unless jobs there get whole nodes, and --nodes");
    switch (policy.bind_to) {
      case affinity::BindTo::kNone: job_.cpu_bind = "none"; break;
      case affinity::BindTo::kPu: job_.cpu_bind = "threads"; break;
      case affinity::BindTo::kSocket: job_.cpu_bind = "sockets"; break;
      case affinity::BindTo::kNuma: job_.cpu_bind = "ldoms"; break;
      case affinity::BindTo::kGpu:
        job_.notes.emplace_back(
            "srun binds each rank to cores, and Slurm decides whether these are near its GPU: ddlrun plans "
            "only for a --site whose profile has a model of its nodes, and for whole nodes (--exclusive)");
        [[fallthrough]];
      default: job_.cpu_bind = "cores";
    }
    return {};
  }

  Status check_srun() {
    const bool is_even = job_.max_nodes > 0 || job_.num_ranks == job_.nodes * job_.tasks_per_node;
    if (!by_srun() || job_.tasks_per_node == 0 || is_even) return {};
    return refuse("srun places the same number of ranks on each node, and " +
                  counted(job_.num_ranks, "rank") + " on " + counted(job_.nodes, "node") +
                  " do not divide evenly: choose another -np, or let ddlrun start them");
  }

  const ScriptRequest& request_;
  const SiteProfile* site_;
  std::optional<affinity::Topology> topology_;  // of a node, by the site's model
  std::optional<affinity::BindingPlan> plan_;
  BatchJob job_;
  int used_gpus_ = 0;  // of each node, by its ranks
};

}  // namespace

Result<BatchJob> make_batch_job(const ScriptRequest& request, const SiteProfile* site) {
  return JobMaker(request, site).make();
}

}  // namespace ddl::templates
