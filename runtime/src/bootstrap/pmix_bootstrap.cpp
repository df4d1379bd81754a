// The PMIx bootstrap: the on-demand module libddl_pmix.so, the only code that links libpmix.
#include <pmix.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/text.h"
#include "contract/environment.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/bootstrap/host_layout.h"
#include "runtime/src/common/interruption.h"

namespace ddl::runtime {

// The module: a PMIx client. Compiled into libddl_pmix.so, not into libddl.so.
namespace {

Error pmix_error(const std::string& call, pmix_status_t status) {
  const ErrorCode code = status == PMIX_ERR_TIMEOUT ? ErrorCode::kTimeout : ErrorCode::kProtocol;
  return Error(code, call + ": " + PMIx_Error_string(status));
}

/// Owns a value that PMIx_Get() allocated.
class PmixValue {
 public:
  PmixValue() = default;
  ~PmixValue() {
    if (value_ != nullptr) PMIX_VALUE_RELEASE(value_);
  }
  PmixValue(const PmixValue&) = delete;
  PmixValue& operator=(const PmixValue&) = delete;

  pmix_value_t** out() { return &value_; }

  std::optional<std::string> text() const {
    if (value_ == nullptr || value_->type != PMIX_STRING || value_->data.string == nullptr)
      return std::nullopt;
    return value_->data.string;
  }
  std::optional<std::int64_t> number() const {
    if (value_ == nullptr) return std::nullopt;
    switch (value_->type) {
      case PMIX_UINT16: return value_->data.uint16;
      case PMIX_UINT32: return value_->data.uint32;
      case PMIX_PROC_RANK: return value_->data.rank;
      default: return std::nullopt;
    }
  }

 private:
  pmix_value_t* value_ = nullptr;
};

/// What a call of PMIx is to obey.
class Directives {
 public:
  Directives() = default;
  ~Directives() {
    for (pmix_info_t& info : infos_) PMIX_INFO_DESTRUCT(&info);
  }
  Directives(const Directives&) = delete;
  Directives& operator=(const Directives&) = delete;

  /// Nothing if the deadline never passes.
  void add_timeout(Deadline deadline) {
    if (deadline.is_never()) return;
    // PMIx takes whole seconds; 0 would mean "no timeout".
    const auto left = std::chrono::ceil<std::chrono::seconds>(deadline.remaining()).count();
    const int seconds = static_cast<int>(std::clamp<long long>(left, 1, std::numeric_limits<int>::max()));
    add(PMIX_TIMEOUT, &seconds, PMIX_INT);
  }
  void add(const char* key) {
    const bool yes = true;
    add(key, &yes, PMIX_BOOL);
  }

  const pmix_info_t* data() const { return infos_.data(); }
  std::size_t size() const { return infos_.size(); }

 private:
  void add(const char* key, const void* value, pmix_data_type_t type) {
    infos_.emplace_back();
    PMIX_INFO_CONSTRUCT(&infos_.back());
    PMIX_INFO_LOAD(&infos_.back(), key, value, type);
  }
  std::vector<pmix_info_t> infos_;
};

/// The server ends a call of PMIx whose timeout has passed. A server that does not answer, because it was stopped or
/// hangs, does not; that is detected here, this much later, because the server's own error is more exact.
constexpr std::chrono::seconds kServerGrace{2};

Deadline with_grace(Deadline deadline) {
  return deadline.is_never() ? deadline : Deadline::after(deadline.remaining() + kServerGrace);
}

/// A call of libpmix that waits for the server, on a thread of its own, because libpmix waits without limit. If the
/// deadline passes first, the thread stays inside the call, possibly for ever, because nothing can end it. So the
/// thread uses only this object, which it co-owns; this module is never unloaded; and the process may exit meanwhile,
/// because libpmix registers no exit handler.
template <typename Answer>
class ServerCall {
 public:
  using Function = std::function<void(Answer&)>;

  /// Starts the call. The function uses only what it owns, and the answer. Error: the user may not start more
  /// threads.
  static Result<std::shared_ptr<ServerCall>> start(Function function) {
    auto call = std::make_shared<ServerCall>();
    call->ended_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!call->ended_) return fail_errno("eventfd");
    try {
      std::thread([call, function = std::move(function)] {
        // Signals are for the program's threads; libpmix's thread inherits this mask.
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
        function(call->answer_);
        (void)::eventfd_write(call->ended_.get(), 1);
      }).detach();
    } catch (const std::system_error& error) {
      return fail(errno_error("a thread for a call of PMIx", error.code().value()));
    }
    return call;
  }

  /// The answer, which the caller may use from now on; null if the deadline has passed before. Error: the program has
  /// ended the wait.
  Result<Answer*> wait(Deadline deadline) {
    // Its counter is never read back: it stays readable.
    pollfd ended{ended_.get(), POLLIN, 0};
    const int ready = poll_interruptibly({&ended, 1}, deadline);
    if (ready < 0) return fail_errno("waiting for the other ranks and the PMIx server");
    return ready == 0 ? nullptr : &answer_;
  }

 private:
  UniqueFd ended_;  ///< an eventfd
  Answer answer_{};
};

/// Names the call, the time waited, and how to check the server. Not kTimeout, which means that ranks are missing.
Error server_is_silent(const std::string& call, Deadline::Clock::time_point since) {
  const std::chrono::duration<double> waited = Deadline::Clock::now() - since;
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.3g", waited.count());
  return Error(
      ErrorCode::kClosed,
      call + ": the PMIx server of this host has not answered for " + seconds.data() + " s (" +
          contract::env::kStartTimeoutSeconds +
          "); it is a process of the launcher, which may have been stopped, or have no CPU: under ddlrun, "
          "\"ps -C ddl-agent -o pid,stat,args\" shows its state, which is T if it was stopped");
}

/// The server may still be in the call.
bool is_unanswered(const Error& error) {
  return error.code() == ErrorCode::kClosed || is_interruption(error);
}

/// The result of a call that waits for the server.
struct Answered {
  pmix_status_t status = PMIX_ERROR;
  std::optional<std::string> text;  ///< of PMIx_Get(), if it is a string
};

/// Waits for function until kServerGrace after the deadline, which is the server's. kClosed: the server does not
/// answer. kSystem: no thread could be started.
Result<Answered> ask_server(const std::string& what, ServerCall<Answered>::Function function,
                            Deadline deadline) {
  const auto since = Deadline::Clock::now();
  auto call = ServerCall<Answered>::start(std::move(function));
  if (!call) return fail(std::move(call.error().during(what)));
  DDL_ASSIGN(answered, (*call)->wait(with_grace(deadline)));
  if (answered == nullptr) return fail(server_is_silent(what, since));
  return std::move(*answered);
}

/// The facts about the job that the server gave when this process connected.
struct JobFacts {
  pmix_status_t joined = PMIX_ERROR;  ///< of PMIx_Init(); the other fields are valid if it is PMIX_SUCCESS
  pmix_proc_t self{};
  pmix_status_t size_found = PMIX_ERROR;
  std::optional<std::int64_t> size;
  pmix_status_t peers_found = PMIX_ERROR;
  std::optional<std::string> peers;
  std::optional<std::string> host;
};

/// Waits for the server.
void join_server(JobFacts& facts) {
  facts.joined = PMIx_Init(&facts.self, nullptr, 0);
  if (facts.joined != PMIX_SUCCESS) return;
  // Keys of the job as a whole, which every server must have.
  pmix_proc_t job = facts.self;
  job.rank = PMIX_RANK_WILDCARD;
  PmixValue size, peers, host;
  facts.size_found = PMIx_Get(&job, PMIX_JOB_SIZE, nullptr, 0, size.out());
  if (facts.size_found == PMIX_SUCCESS) facts.size = size.number();
  facts.peers_found = PMIx_Get(&job, PMIX_LOCAL_PEERS, nullptr, 0, peers.out());
  if (facts.peers_found == PMIX_SUCCESS) facts.peers = peers.text();
  // Optional: only for messages. The user knows the host by the name that the launcher uses.
  if (PMIx_Get(&facts.self, PMIX_HOSTNAME, nullptr, 0, host.out()) == PMIX_SUCCESS) facts.host = host.text();
}

/// This process's connection to its PMIx server: opened by the first context, closed when the process exits.
///
/// It is not closed with a context, because leaving is not collective, and for a server a process that has called
/// PMIx_Finalize() is gone: the fence of the next context would then end early, with PMIX_ERR_PARTIAL_SUCCESS. It is
/// not closed at all if a context is still alive at exit, so that the launcher can tell such an end from a proper
/// one.
class PmixSession {
 public:
  /// The only instance: PMIx itself is one per process.
  static PmixSession& instance() {
    static PmixSession session;
    return session;
  }

  /// True in a forked child, whose copy of the connection belongs to the parent.
  bool is_inherited() const { return owner_ != 0 && owner_ != ::getpid(); }
  /// Connects unless that has been done. The facts live as long as the process. If the deadline passes, PMIx_Init()
  /// goes on, and the next open() waits for the same call: one thread at a time may call it. Not thread-safe; neither
  /// is the creation of contexts. kClosed: the server does not answer. Any other error: it does not admit this
  /// process.
  Result<const JobFacts*> open(Deadline deadline) {
    const auto since = Deadline::Clock::now();
    if (!joining_) {
      DDL_ASSIGN(joining, ServerCall<JobFacts>::start(join_server));
      joining_ = std::move(joining);
      owner_ = ::getpid();
    }
    DDL_ASSIGN(ended, joining_->wait(deadline));
    const JobFacts* const facts = ended;
    if (facts == nullptr) return fail(server_is_silent("PMIx_Init", since));
    is_open_ = facts->joined == PMIX_SUCCESS;
    if (is_open_) return facts;
    const Error error = pmix_error("PMIx_Init", facts->joined);
    joining_.reset();
    owner_ = 0;
    return fail(error);
  }
  /// The server has not answered. A thread may still be in a call of it, and PMIx_Finalize() would hang.
  void give_up() { is_given_up_ = true; }
  /// Of the process that is this rank now: it is a part of the keys of what the process has put (kProcessName). "": not
  /// known yet.
  std::string& process_name(int rank) { return names_[rank]; }
  void add_user() { ++users_; }
  void remove_user() { --users_; }

 private:
  PmixSession() = default;
  ~PmixSession() {
    // A forked child that calls exit() has inherited this, but not the connection's thread.
    if (is_open_ && !is_given_up_ && owner_ == ::getpid() && users_ == 0) PMIx_Finalize(nullptr, 0);
  }

  std::shared_ptr<ServerCall<JobFacts>> joining_;
  bool is_open_ = false;
  bool is_given_up_ = false;
  pid_t owner_ = 0;
  int users_ = 0;
  std::map<int, std::string> names_;
};

/// The key of a name that each process has for itself. A rank may be a shell that starts one program after the other:
/// what the processes before have put remains, under keys that have their names.
constexpr char kProcessName[] = "ddl.process";

/// Every requested value has been put before a fence that has ended. Yet Slurm's server sometimes does not find it at
/// once, if an MPI of the same process has put other values.
constexpr std::chrono::seconds kPublished{5};

/// A server that works answers an abort at once.
constexpr std::chrono::seconds kAbortPatience{3};

class PmixBootstrap final : public Bootstrap {
 public:
  PmixBootstrap(PmixSession& session, const pmix_proc_t& self, bool is_successor)
      : session_(session), self_(self), is_successor_(is_successor) {
    session.add_user();
  }
  ~PmixBootstrap() override { (void)leave(); }

  /// Computes the membership from the server's facts.
  Status load_membership(const JobFacts& facts, std::uint32_t generation);

  const char* name() const override { return "pmix"; }
  const Membership& membership() const override { return membership_; }

  Status put(std::string_view key, std::string_view value) override {
    std::string& name = session_.process_name(membership_.rank);
    if (name.empty()) {
      DDL_ASSIGN(made, random_hex(8));
      name = std::move(made);
      DDL_TRY(put_value(kProcessName, name));
    }
    return put_value(key_of(name, key), value);
  }

  Status fence(Deadline deadline) override {
    const auto commit_and_fence = [deadline](Answered& answered) {
      answered.status = PMIx_Commit();
      answered.text = "PMIx_Commit";
      if (answered.status != PMIX_SUCCESS) return;
      answered.text = "PMIx_Fence";
      do {
        // Without PMIX_COLLECT_DATA: a rank that needs a value fetches it, instead of every node receiving all values.
        Directives directives;
        directives.add_timeout(deadline);
        answered.status = PMIx_Fence(nullptr, 0, directives.data(), directives.size());
        // Where a rank is a shell that starts one program after the other, the process before this one of another
        // rank may leave only now. The server counts it as one of this fence, which ends without it on this host.
      } while (answered.status == PMIX_ERR_PARTIAL_SUCCESS && !deadline.has_passed());
    };
    DDL_ASSIGN(answered, ask("PMIx_Fence", commit_and_fence, deadline));
    if (answered.status == PMIX_ERR_INVALID_ARG) {
      return fail(ErrorCode::kProtocol, *answered.text +
                                            ": another rank makes another fence, as MPI_Init does; " +
                                            contract::env::kCpuOperations + " must be the same on all ranks");
    }
    if (answered.status != PMIX_SUCCESS) return fail(pmix_error(*answered.text, answered.status));
    return {};
  }

  Result<std::string> get(int rank, std::string_view key, Deadline deadline) override {
    std::string& name = session_.process_name(rank);
    if (name.empty()) {
      // The server of this host keeps what it has fetched from others, also for the next process of a rank.
      const bool is_elsewhere = membership_.layout.host_of(rank) != membership_.layout.own;
      DDL_ASSIGN(fetched, get_value(rank, kProcessName, is_successor_ && is_elsewhere, deadline));
      name = std::move(fetched);
    }
    return get_value(rank, key_of(name, key), false, deadline);
  }

  void notify_launcher(int event) override {
    // Without a callback the call returns when the server has it. PMIX_RANGE_RM does not reach the server of OpenPMIx
    // 4.2.
    (void)PMIx_Notify_event(event, &self_, PMIX_RANGE_SESSION, nullptr, 0, nullptr, nullptr);
  }

  void abort_job(int code, const std::string& text) override {
    const auto abort = [code, text](Answered& answered) {
      answered.status = PMIx_Abort(code, text.c_str(), nullptr, 0);
    };
    (void)ask_server("PMIx_Abort", abort, Deadline::after(kAbortPatience));
  }

  Status leave() override {
    if (!std::exchange(left_, true)) session_.remove_user();
    return {};
  }

 private:
  pmix_proc_t process(pmix_rank_t rank) const {
    pmix_proc_t proc = self_;
    proc.rank = rank;
    return proc;
  }
  static std::string key_of(const std::string& process_name, std::string_view key) {
    return std::string(key) + "." + process_name;
  }

  Status put_value(const std::string& key, std::string_view value) {
    const std::string text(value);
    pmix_value_t wrapped;
    PMIX_VALUE_CONSTRUCT(&wrapped);
    PMIX_VALUE_LOAD(&wrapped, text.c_str(), PMIX_STRING);
    const pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key.c_str(), &wrapped);
    PMIX_VALUE_DESTRUCT(&wrapped);
    if (status != PMIX_SUCCESS) return fail(pmix_error("PMIx_Put of " + key, status));
    return {};
  }

  /// asks_anew: the server does not answer with a value that it has fetched before.
  Result<std::string> get_value(int rank, const std::string& key, bool asks_anew, Deadline deadline) {
    const std::string what = "PMIx_Get of " + key + " of rank " + std::to_string(rank);
    const auto fetch = [deadline, asks_anew, key,
                        owner = process(static_cast<pmix_rank_t>(rank))](Answered& answered) {
      Directives directives;
      directives.add_timeout(deadline);
      if (asks_anew) directives.add(PMIX_GET_REFRESH_CACHE);
      const Deadline patience = Deadline::after(kPublished);
      for (auto pause = std::chrono::milliseconds(1);; pause *= 2) {
        PmixValue value;
        answered.status = PMIx_Get(&owner, key.c_str(), directives.data(), directives.size(), value.out());
        if (answered.status == PMIX_SUCCESS) answered.text = value.text();
        if (answered.status != PMIX_ERR_NOT_FOUND || patience.has_passed() || deadline.has_passed()) return;
        std::this_thread::sleep_for(pause);
      }
    };
    DDL_ASSIGN(answered, ask(what, fetch, deadline));
    if (answered.status != PMIX_SUCCESS) return fail(pmix_error(what, answered.status));
    if (!answered.text) return fail(ErrorCode::kProtocol, what + ": not a string");
    return *std::move(answered.text);
  }

  Result<Answered> ask(const std::string& what, ServerCall<Answered>::Function function, Deadline deadline) {
    auto answered = ask_server(what, std::move(function), deadline);
    if (!answered && is_unanswered(answered.error())) session_.give_up();
    return answered;
  }

  /// The ranks of each host.
  Status map_hosts(std::vector<std::vector<int>>& groups) const;

  PmixSession& session_;
  pmix_proc_t self_;
  bool is_successor_;
  Membership membership_;
  bool left_ = false;
};

/// "0,1,2" as ranks.
Result<std::vector<int>> ranks_of_list(const std::string& list) {
  std::vector<int> ranks;
  for (const std::string_view part : split(list, ',')) {
    const auto rank = parse_integer(trim(part));
    if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max()) {
      return fail(ErrorCode::kProtocol,
                  "the PMIx server's list of local peers is not one of ranks: \"" + list + "\"");
    }
    ranks.push_back(static_cast<int>(*rank));
  }
  return ranks;
}

Status PmixBootstrap::map_hosts(std::vector<std::vector<int>>& groups) const {
  // The launcher gave every server these values at the start: with PMIX_OPTIONAL no request goes over the network.
  // Not PMIx_Resolve_peers(): under Open MPI 4.1 it does not return for another host.
  Directives only_what_is_here;
  only_what_is_here.add(PMIX_OPTIONAL);
  std::map<std::string, std::vector<int>> ranks_of_host;
  for (int rank = 0; rank < membership_.size; ++rank) {
    PmixValue host;
    const pmix_proc_t proc = process(static_cast<pmix_rank_t>(rank));
    const pmix_status_t status =
        PMIx_Get(&proc, PMIX_HOSTNAME, only_what_is_here.data(), only_what_is_here.size(), host.out());
    const auto name = status == PMIX_SUCCESS ? host.text() : std::nullopt;
    if (!name) {
      return fail(ErrorCode::kUnavailable, "the PMIx server does not know the host of rank " +
                                               std::to_string(rank) + " (" + PMIx_Error_string(status) +
                                               "), and the job has ranks on several hosts");
    }
    ranks_of_host[*name].push_back(rank);
  }
  groups.clear();
  for (auto& [name, ranks] : ranks_of_host) groups.push_back(std::move(ranks));
  return {};
}

Status PmixBootstrap::load_membership(const JobFacts& facts, std::uint32_t generation) {
  membership_.generation = generation;
  membership_.rank = static_cast<int>(self_.rank);

  if (facts.size_found != PMIX_SUCCESS)
    return fail(pmix_error("PMIx_Get of " PMIX_JOB_SIZE, facts.size_found));
  const auto ranks = facts.size;
  if (!ranks || *ranks <= 0 || *ranks > std::numeric_limits<int>::max() || self_.rank >= *ranks) {
    return fail(ErrorCode::kProtocol, "the PMIx server gave rank " + std::to_string(self_.rank) +
                                          " in a job of " + (ranks ? std::to_string(*ranks) : "unknown") +
                                          " processes");
  }
  membership_.size = static_cast<int>(*ranks);

  if (facts.peers_found != PMIX_SUCCESS)
    return fail(pmix_error("PMIx_Get of " PMIX_LOCAL_PEERS, facts.peers_found));
  DDL_ASSIGN(local, ranks_of_list(facts.peers.value_or("")));
  std::vector<std::vector<int>> groups{local};
  if (std::ssize(local) != membership_.size) DDL_TRY(map_hosts(groups));
  auto layout = HostLayout::of(std::move(groups), membership_.rank, membership_.size);
  if (!layout) return fail(std::move(layout.error().during("the PMIx server's map of the job")));
  membership_.layout = *std::move(layout);
  std::sort(local.begin(), local.end());
  if (membership_.local_members() != local) {
    return fail(ErrorCode::kProtocol,
                "the PMIx server's list of local peers does not fit its map of the job");
  }

  membership_.host = facts.host.value_or(host_name());
  return {};
}

Result<BootstrapAttempt> create(std::uint32_t generation, bool is_successor, Deadline deadline) {
  PmixSession& session = PmixSession::instance();
  if (session.is_inherited()) {
    return fail(
        ErrorCode::kInvalidArgument,
        "this process was forked, without exec, from one that had joined a job; it cannot join in its place");
  }
  const auto facts = session.open(deadline);
  if (!facts && is_unanswered(facts.error())) return fail(facts.error());
  if (!facts) return BootstrapAttempt{nullptr, facts.error().message()};
  auto bootstrap = std::make_unique<PmixBootstrap>(session, (*facts)->self, is_successor);
  DDL_TRY(bootstrap->load_membership(**facts, generation));
  return BootstrapAttempt{std::move(bootstrap), ""};
}

}  // namespace
}  // namespace ddl::runtime

extern "C" __attribute__((visibility("default"))) int ddl_pmix_bootstrap_create(
    std::uint32_t interface, const char* version, std::uint32_t generation, bool is_successor,
    ddl::Deadline deadline, ddl::runtime::InterruptCheck& check,
    ddl::Result<ddl::runtime::BootstrapAttempt>* result) {
  if (interface != ddl::runtime::kBootstrapInterface || std::strcmp(version, ddl::contract::kVersion) != 0)
    return 0;
  ddl::runtime::share_interrupt_check(check);
  *result = ddl::runtime::create(generation, is_successor, deadline);
  return 1;
}
