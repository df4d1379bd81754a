// The module: a PMIx client. Compiled into libddl_pmix.so, not into libddl.so.
#include <pmix.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/text.h"
#include "runtime/src/bootstrap/pmix/module_interface.h"
#include "runtime/src/host_name.h"

namespace ddl::runtime {
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

/// One PMIX_TIMEOUT directive, or none when the deadline never passes.
class TimeoutInfo {
 public:
  explicit TimeoutInfo(Deadline deadline) : given_(!deadline.is_never()) {
    if (!given_) return;
    // Whole seconds is what PMIx takes; 0 would mean "no timeout".
    const auto left = std::chrono::ceil<std::chrono::seconds>(deadline.remaining()).count();
    const int seconds = static_cast<int>(std::clamp<long long>(left, 1, std::numeric_limits<int>::max()));
    PMIX_INFO_CONSTRUCT(&info_);
    PMIX_INFO_LOAD(&info_, PMIX_TIMEOUT, &seconds, PMIX_INT);
  }
  ~TimeoutInfo() {
    if (given_) PMIX_INFO_DESTRUCT(&info_);
  }
  TimeoutInfo(const TimeoutInfo&) = delete;
  TimeoutInfo& operator=(const TimeoutInfo&) = delete;

  const pmix_info_t* data() const { return given_ ? &info_ : nullptr; }
  std::size_t size() const { return given_ ? 1 : 0; }

 private:
  bool given_;
  pmix_info_t info_{};
};

/// This process's connection to its PMIx server: opened by the first context, closed when the process exits.
///
/// It is not closed with a context, because leaving is not collective and a server counts who has called
/// PMIx_Finalize() as gone: the fence of the next context would then end early, with PMIX_ERR_PARTIAL_SUCCESS. It is not
/// closed at all if a context is still alive at exit, so that the launcher can tell such an end from a proper one.
class PmixSession {
 public:
  /// The only one; PMIx itself is one per process.
  static PmixSession& instance() {
    static PmixSession session;
    return session;
  }

  /// True in a forked child, whose copy of the connection belongs to the parent.
  bool is_inherited() const { return owner_ != 0 && owner_ != ::getpid(); }
  /// Connects unless that has been done. Not thread-safe, as is creating contexts.
  pmix_status_t open(pmix_proc_t& self) {
    if (owner_ == 0) {
      if (const pmix_status_t status = PMIx_Init(&self_, nullptr, 0); status != PMIX_SUCCESS) return status;
      owner_ = ::getpid();
    }
    self = self_;
    return PMIX_SUCCESS;
  }
  void add_user() { ++users_; }
  void remove_user() { --users_; }

 private:
  PmixSession() = default;
  ~PmixSession() {
    // A forked child that calls exit() has inherited this, but not the connection's thread.
    if (owner_ == ::getpid() && users_ == 0) PMIx_Finalize(nullptr, 0);
  }

  pmix_proc_t self_{};
  pid_t owner_ = 0;
  int users_ = 0;
};

/// Everything that is asked for has been put, before a fence that has ended. Yet Slurm's server, where an MPI of the same
/// process has put other things, now and then does not find it at once.
constexpr std::chrono::seconds kPublished{5};

class PmixBootstrap final : public Bootstrap {
 public:
  PmixBootstrap(PmixSession& session, const pmix_proc_t& self) : session_(session), self_(self) {
    session.add_user();
  }
  ~PmixBootstrap() override { (void)leave(); }

  /// Learns from the server who is in the job.
  Status load_membership(std::uint32_t generation);

  const char* name() const override { return "pmix"; }
  const Membership& membership() const override { return membership_; }

  Status put(std::string_view key, std::string_view value) override {
    const std::string text(value);
    pmix_value_t wrapped;
    PMIX_VALUE_CONSTRUCT(&wrapped);
    PMIX_VALUE_LOAD(&wrapped, text.c_str(), PMIX_STRING);
    const pmix_status_t status = PMIx_Put(PMIX_GLOBAL, std::string(key).c_str(), &wrapped);
    PMIX_VALUE_DESTRUCT(&wrapped);
    if (status != PMIX_SUCCESS) return fail(pmix_error("PMIx_Put of " + std::string(key), status));
    return {};
  }

  Status fence(Deadline deadline) override {
    if (const pmix_status_t status = PMIx_Commit(); status != PMIX_SUCCESS) {
      return fail(pmix_error("PMIx_Commit", status));
    }
    // Without PMIX_COLLECT_DATA: who needs a value fetches it, instead of every node receiving everybody's.
    const TimeoutInfo timeout(deadline);
    const pmix_status_t status = PMIx_Fence(nullptr, 0, timeout.data(), timeout.size());
    if (status != PMIX_SUCCESS) return fail(pmix_error("PMIx_Fence", status));
    return {};
  }

  Result<std::string> get(int rank, std::string_view key, Deadline deadline) override {
    const std::string what = "PMIx_Get of " + std::string(key) + " of rank " + std::to_string(rank);
    const TimeoutInfo timeout(deadline);
    PmixValue value;
    const pmix_proc_t owner = process(static_cast<pmix_rank_t>(rank));
    const Deadline patience = Deadline::after(kPublished);
    pmix_status_t status = PMIX_ERR_NOT_FOUND;
    for (auto pause = std::chrono::milliseconds(1);; pause *= 2) {
      status = PMIx_Get(&owner, std::string(key).c_str(), timeout.data(), timeout.size(), value.out());
      if (status != PMIX_ERR_NOT_FOUND || patience.has_passed() || deadline.has_passed()) break;
      std::this_thread::sleep_for(pause);
    }
    if (status != PMIX_SUCCESS) return fail(pmix_error(what, status));
    auto text = value.text();
    if (!text) return fail(ErrorCode::kProtocol, what + ": not a string");
    return *std::move(text);
  }

  void tell_launcher(int event) override {
    // Without a callback the call returns when the server has it. PMIX_RANGE_RM does not reach the server of OpenPMIx 4.2.
    (void)PMIx_Notify_event(event, &self_, PMIX_RANGE_SESSION, nullptr, 0, nullptr, nullptr);
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
  /// A key of the job as a whole (rank PMIX_RANK_WILDCARD), which every server must have.
  Status get_of_job(const char* key, PmixValue& value) const {
    const pmix_proc_t job = process(PMIX_RANK_WILDCARD);
    const pmix_status_t status = PMIx_Get(&job, key, nullptr, 0, value.out());
    if (status != PMIX_SUCCESS) return fail(pmix_error(std::string("PMIx_Get of ") + key, status));
    return {};
  }

  /// The ranks of each host.
  Status map_hosts(std::vector<std::vector<int>>& groups) const;

  PmixSession& session_;
  pmix_proc_t self_;
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
  // Of what the launcher told every server at the start: with PMIX_OPTIONAL nothing is asked over the network. Not
  // PMIx_Resolve_peers(): under Open MPI 4.1 it does not return for another host.
  bool yes = true;
  pmix_info_t only_what_is_here;
  PMIX_INFO_CONSTRUCT(&only_what_is_here);
  PMIX_INFO_LOAD(&only_what_is_here, PMIX_OPTIONAL, &yes, PMIX_BOOL);
  std::map<std::string, std::vector<int>> ranks_of_host;
  for (int rank = 0; rank < membership_.size; ++rank) {
    PmixValue host;
    const pmix_proc_t proc = process(static_cast<pmix_rank_t>(rank));
    const pmix_status_t status = PMIx_Get(&proc, PMIX_HOSTNAME, &only_what_is_here, 1, host.out());
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

Status PmixBootstrap::load_membership(std::uint32_t generation) {
  membership_.generation = generation;
  membership_.rank = static_cast<int>(self_.rank);

  PmixValue size;
  DDL_TRY(get_of_job(PMIX_JOB_SIZE, size));
  const auto ranks = size.number();
  if (!ranks || *ranks <= 0 || *ranks > std::numeric_limits<int>::max() || self_.rank >= *ranks) {
    return fail(ErrorCode::kProtocol, "the PMIx server gave rank " + std::to_string(self_.rank) +
                                          " in a job of " + (ranks ? std::to_string(*ranks) : "unknown") +
                                          " processes");
  }
  membership_.size = static_cast<int>(*ranks);

  PmixValue peers;
  DDL_TRY(get_of_job(PMIX_LOCAL_PEERS, peers));
  auto local = ranks_of_list(peers.text().value_or(""));
  if (!local) return fail(std::move(local.error()));
  std::vector<std::vector<int>> groups{*local};
  if (static_cast<int>(local->size()) != membership_.size) DDL_TRY(map_hosts(groups));
  auto layout = HostLayout::of(std::move(groups), membership_.rank, membership_.size);
  if (!layout) return fail(std::move(layout.error().during("the PMIx server's map of the job")));
  membership_.layout = *std::move(layout);
  std::sort(local->begin(), local->end());
  if (membership_.local_members() != *local) {
    return fail(ErrorCode::kProtocol,
                "the PMIx server's list of local peers does not fit its map of the job");
  }

  // Optional: only for sentences. The launcher's name of the host is the one that the user knows.
  PmixValue host;
  const pmix_status_t status = PMIx_Get(&self_, PMIX_HOSTNAME, nullptr, 0, host.out());
  membership_.host = (status == PMIX_SUCCESS ? host.text() : std::nullopt).value_or(host_name());
  return {};
}

Result<BootstrapAttempt> create(std::uint32_t generation) {
  pmix_proc_t self;
  PmixSession& session = PmixSession::instance();
  if (session.is_inherited()) {
    return fail(
        ErrorCode::kInvalidArgument,
        "this process was forked, without exec, from one that had joined a job; it cannot join in its place");
  }
  if (const pmix_status_t status = session.open(self); status != PMIX_SUCCESS) {
    return BootstrapAttempt{nullptr, std::string("PMIx_Init: ") + PMIx_Error_string(status)};
  }
  auto bootstrap = std::make_unique<PmixBootstrap>(session, self);
  DDL_TRY(bootstrap->load_membership(generation));
  return BootstrapAttempt{std::move(bootstrap), ""};
}

}  // namespace
}  // namespace ddl::runtime

extern "C" __attribute__((visibility("default"))) int ddl_pmix_bootstrap_create(
    std::uint32_t interface, const char* version, std::uint32_t generation,
    ddl::Result<ddl::runtime::BootstrapAttempt>* result) {
  if (interface != ddl::runtime::kBootstrapInterface || std::strcmp(version, ddl::contract::kVersion) != 0)
    return 0;
  *result = ddl::runtime::create(generation);
  return 1;
}
