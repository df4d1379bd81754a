#include "launcher/mpi/mpi_rank.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>

#include "base/command.h"
#include "base/error.h"
#include "base/process_tree.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "contract/environment.h"
#include "launcher/job/allocation.h"
#include "launcher/node/job_presence.h"
#include "launcher/node/node_probe.h"
#include "launcher/node/rank_process.h"
#include "launcher/node/start_child.h"
#include "launcher/plan/framework_environment.h"
#include "launcher/plan/launch_plan.h"
#include "launcher/plan/rank_environment.h"
#include "launcher/process/child.h"
#include "net/pmi_line.h"

namespace ddl::launcher {

// The process that mpirun started stays as a proxy of the one that does the work.

/// Forks. The parent forwards the signals of the set to the child, and returns the child's exit code once it has
/// ended. The child gets nullopt, in a session of its own: if mpirun or its daemon kills the parent, the child lives
/// on, gets SIGTERM, and can end in order what it has started. The set must be blocked. For a process with one
/// thread. Error: fork failed.
Result<std::optional<int>> fork_behind_proxy(const sigset_t& signals);

namespace {

using Clock = std::chrono::steady_clock;

/// Names of rank, size, local rank and local size.
using Names = std::array<const char*, 4>;
constexpr std::array<Names, 2> kLaunchers = {
    Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};

std::optional<int> number_of(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::nullopt;
  const auto number = parse_integer(found->second);
  if (!number || *number < 0 || *number > 1'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

Result<MpiRankNumbers> mpi_rank_numbers(const Environment& environment) {
  for (const Names& names : kLaunchers) {
    const auto rank = number_of(environment, names[0]), num_ranks = number_of(environment, names[1]);
    const auto local_rank = number_of(environment, names[2]), local_size = number_of(environment, names[3]);
    if (rank && num_ranks && local_rank && local_size && *rank < *num_ranks && *local_rank < *local_size)
      return MpiRankNumbers{*rank, *num_ranks, *local_rank, *local_size};
  }
  return fail(
      ErrorCode::kUnavailable,
      "this mpirun does not say which rank a process is: neither OMPI_COMM_WORLD_RANK nor PMI_RANK, with the "
      "variables that belong to it, is set");
}

Result<std::optional<int>> fork_behind_proxy(const sigset_t& signals) {
  const pid_t parent = ::getpid();
  // Not by Child::start(): the child executes no program, it continues this one.
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::raise(SIGTERM);  // it is blocked, and waits to be read
    return std::optional<int>();
  }
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // of mpirun's daemon here
  Child child(pid, true);
  while (!child.wait(Deadline::after(Clock::duration::zero()))) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal > 0 && signal != SIGCHLD) child.signal(signal);
  }
  return std::optional(child.exit_code());
}

namespace {

namespace env = contract::env;

constexpr std::chrono::seconds kMaxCleanupTime{2};
constexpr std::chrono::milliseconds kMaxDrainTime{500};
constexpr double kOrphanGraceSeconds = 0.5;
/// Set for ranks of ddlrun's own agents, and wrong for those of mpirun's.
constexpr const char* kOwnMpiVariables[] = {"OMPI_MCA_schizo", "OMPI_MCA_ess",
                                            "OMPI_MCA_hwloc_base_binding_policy",
                                            "OMPI_MCA_orte_externally_bound"};

/// The child of a local job, with the variables that mpirun gave this process, and with the rank and the number of
/// ranks in the whole job.
Result<ChildSpec> child_of(JobSpec spec, const Environment& environment, const MpiRankNumbers& in_job) {
  const NodeFacts facts = probe_node();
  const Allocation here = local_allocation(hostname());
  spec.num_ranks = in_job.local_size;
  spec.serves_gloo = false;  // there is no agent
  spec.oversubscribe = true;
  DDL_ASSIGN(placement, place(spec, here, {in_job.local_size}));
  DDL_TRY(check_horovod(spec, placement, {facts}));
  DDL_ASSIGN(bindings, bind_nodes(spec, placement, {facts}, environment));
  const LaunchPlan plan =
      make_launch_plan(spec, {placement, {facts}, "mpi", bindings, no_scheduler()}, environment);
  const NodeLaunch& node = plan.nodes.front();

  Environment variables;
  for (const auto& [name, value] : environment) {
    if (is_denied(name)) variables[name] = value;
  }
  const std::string rank = std::to_string(in_job.rank), num_ranks = std::to_string(in_job.num_ranks);
  const auto set = [&](const char* name, const std::string& value) {
    if (is_told_by(name, spec.framework)) variables[name] = value;
  };
  for (const char* name : {env::kRank, env::kTorchRank, "ROLE_RANK"}) set(name, rank);
  for (const char* name : {env::kSize, env::kTorchWorldSize, "ROLE_WORLD_SIZE"}) set(name, num_ranks);
  for (const char* name : {env::kMasterAddr, env::kMasterPort}) {
    if (const auto given = environment.find(name); given != environment.end())
      variables[name] = given->second;
  }
  if (const auto tmpdir = environment.find(env::kMpiTmpdir); tmpdir != environment.end())
    variables["TMPDIR"] = tmpdir->second;
  // hydra serves PMI-1. A daemon of it that srun has started may have PMIx of Slurm's, too.
  if (environment.contains(env::kPmiSize)) {
    if (const auto version = mpich_pmi_version(environment)) variables[version->name] = version->value;
  }
  ChildSpec child = rank_child(plan.job, node, node.ranks[in_job.local_rank], variables);
  child.rank = in_job.rank;
  std::erase_if(child.environment, [&](const std::string& entry) {
    const std::string name = entry.substr(0, entry.find('='));
    if (name == env::kMpiTmpdir || name == env::kMpiHead || entry == "TMPDIR=") return true;
    // mpirun does not report the number of this node in the job, and its ranks have no agent that holds a port.
    constexpr std::string_view kUnknown[] = {env::kCrossRank, env::kCrossSize,  "CROSS_RANK",
                                             "CROSS_SIZE",    "GROUP_RANK",     "GROUP_WORLD_SIZE",
                                             "NODE_RANK",     env::kTorchRunId, env::kJaxCoordinator};
    if (std::find(std::begin(kUnknown), std::end(kUnknown), name) != std::end(kUnknown)) return true;
    const auto given = environment.find(name);
    return std::find(std::begin(kOwnMpiVariables), std::end(kOwnMpiVariables), name) !=
               std::end(kOwnMpiVariables) &&
           (given == environment.end() || entry != name + "=" + given->second);
  });
  return child;
}

/// The descriptors that mpirun gave this process: its streams, and PMI's.
ChildFds own_fds(const Environment& environment, ChildSpec& child, bool reads_stdin) {
  ChildFds fds;
  for (int stream = 0; stream < 3; ++stream)
    fds.standard[stream] = UniqueFd(::fcntl(stream, F_DUPFD_CLOEXEC, 3));
  // hydra leaves the others waiting at an input that never ends.
  if (!reads_stdin) fds.standard[0] = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto pmi = environment.find(env::kPmiFd);
  const auto number = pmi == environment.end() ? std::nullopt : parse_integer(pmi->second);
  if (!number || *number < 3 || *number > 1'000'000) return fds;
  UniqueFd copy(::fcntl(static_cast<int>(*number), F_DUPFD_CLOEXEC, 3));
  if (copy) {
    child.inherited_fds = {static_cast<int>(*number)};
    fds.inherited.push_back(std::move(copy));
  }
  return fds;
}

/// The rank, from its start to its end.
class WatchedRank {
 public:
  WatchedRank(pid_t pid, pid_t parent, double grace_seconds)
      : pid_(pid), parent_(parent), grace_seconds_(grace_seconds) {}

  /// Forwards signals until it has ended. Returns its status as from waitpid(2).
  int wait(const sigset_t& signals) {
    int status = 0;
    for (;;) {
      if (::waitpid(pid_, &status, WNOHANG) == pid_) return status;
      siginfo_t info{};
      const timespec left = until_kill();
      const int signal =
          kill_at_.is_never() ? ::sigwaitinfo(&signals, &info) : ::sigtimedwait(&signals, &info, &left);
      if (signal > 0 && signal != SIGCHLD) forward(signal);
      if (kill_at_.has_passed()) ::kill(-pid_, SIGKILL);
    }
  }
  bool was_asked_to_end() const { return was_asked_to_end_; }

 private:
  void forward(int signal) {
    ::kill(-pid_, signal);
    const bool is_end = signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
    if (!is_end) return;
    was_asked_to_end_ = true;
    // If the parent is gone, nothing waits for a graceful end.
    const bool is_orphaned = ::getppid() != parent_;
    const std::chrono::duration<double> grace(is_orphaned ? kOrphanGraceSeconds : grace_seconds_);
    const Deadline then = Deadline::after(std::chrono::duration_cast<Clock::duration>(grace));
    if (kill_at_.is_never() || then.when() < kill_at_.when()) kill_at_ = then;
  }
  timespec until_kill() const {
    constexpr int kThousand = 1000, kMillion = 1'000'000;
    const int left = kill_at_.is_never() ? 0 : kill_at_.poll_milliseconds() + 1;
    return {left / kThousand, static_cast<long>(left % kThousand) * kMillion};
  }

  pid_t pid_;
  pid_t parent_;
  double grace_seconds_;
  Deadline kill_at_ = Deadline::never();
  bool was_asked_to_end_ = false;
};

/// Open MPI ends a job when a rank exits with another code than 0; hydra does when it is asked to.
void end_job(const ChildFds& fds, int code) {
  if (fds.inherited.empty()) return;
  // mpirun must have read the rank's output before the abort. No event reports that a pipe was read empty, so it is
  // polled.
  const Deadline deadline = Deadline::after(kMaxDrainTime);
  for (int unread = 0;
       ::ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0 && !deadline.has_passed();)
    ::poll(nullptr, 0, 1);
  const std::string text = net::PmiLine{"abort", {{"exitcode", std::to_string(code)}}}.text();
  (void)::send(fds.inherited.front().get(), text.data(), text.size(), MSG_NOSIGNAL);
}

/// As an agent does for its ranks. Error: the ranks are not announced, and only the warning is missing.
Result<JobPresence> announce_ranks(const JobAnnouncement& job, const Scheduler& scheduler,
                                   const std::function<void(const std::string&)>& warn) {
  auto presence = JobPresence::announce(job.scheduler_job, job.head);
  if (!presence) return presence;
  for (const JobHead& other : presence->others())
    warn(shared_cpus_warning(other, hostname(), scheduler, job.scheduler_job));
  return presence;
}

JobReport report_of(RankOutcome outcome, EndReason reason) {
  outcome.host = hostname();
  JobReport report;
  report.reason = reason;
  report.exit_code = exit_code_of(outcome);
  report.first_failure = outcome.rank;  // the only one that is known here
  report.run_seconds = outcome.run_seconds;
  report.saw_output = false;
  report.ranks.push_back(std::move(outcome));
  return report;
}

}  // namespace

int run_mpi_rank(JobSpec spec, const Environment& environment,
                 const std::function<void(const std::string&)>& warn,
                 const std::function<void(const JobReport&)>& on_failure) {
  const auto refuse = [&](const Error& error) {
    JobReport report;
    report.reason = EndReason::kStartFailed;
    report.exit_code = contract::kStartFailure;
    report.message = error.message();
    on_failure(report);
    return report.exit_code;
  };
  const auto in_job = mpi_rank_numbers(environment);
  if (!in_job) return refuse(in_job.error());
  const double grace = spec.kill_grace_seconds;
  const bool reads_stdin = spec.stdin_target == StdinTarget::kAll ||
                           (spec.stdin_target == StdinTarget::kRank0 && in_job->rank == 0);
  auto child = child_of(std::move(spec), environment, *in_job);
  if (!child) return refuse(child.error());
  const ChildFds fds = own_fds(environment, *child, reads_stdin);

  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP})
    sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const pid_t parent = ::getpid();
  const auto code_of_child = fork_behind_proxy(signals);
  if (!code_of_child) return refuse(code_of_child.error());
  if (*code_of_child) return **code_of_child;
  (void)become_subreaper();
  std::optional<Result<JobPresence>> presence;  // until the rank has ended
  const JobAnnouncement job = parse_announcement(value_of(environment, env::kMpiHead));
  if (in_job->local_rank == 0 && !job.scheduler_job.empty())
    presence.emplace(announce_ranks(job, scheduler_here(environment), warn));
  auto started = start_child(*child, fds, open_files_limit());
  if (!started) return refuse(started.error());
  const FailedCommand command{child->argv.front(), child->workdir, search_path(child->environment)};
  message::ChildFailed failure;
  pollfd entry{started->error_pipe.get(), POLLIN, 0};
  for (StartState state = StartState::kStarting; state == StartState::kStarting;) {
    retry_eintr([&] { return ::poll(&entry, 1, -1); });
    state = read_start_state(*started, failure);
    if (state != StartState::kFailed) continue;
    RankOutcome outcome = start_failure(failure, command);
    outcome.pid = started->pid;
    retry_eintr([&] { return ::waitpid(started->pid, nullptr, 0); });
    on_failure(report_of(outcome, EndReason::kStartFailed));
    return outcome.exit_code;
  }
  WatchedRank rank(started->pid, parent, grace);
  const int status = rank.wait(signals);
  (void)kill_descendants(Deadline::after(kMaxCleanupTime));
  const std::chrono::duration<double> run_time = Clock::now() - started->started;
  RankOutcome outcome = rank_end({in_job->rank, status, run_time.count()}, started->pid, {});
  const int code = exit_code_of(outcome);
  if (code == 0 || rank.was_asked_to_end()) return code;
  describe_carriage_return(command, outcome);
  on_failure(report_of(std::move(outcome), EndReason::kRankFailed));
  end_job(fds, code);
  return code;
}

}  // namespace ddl::launcher
