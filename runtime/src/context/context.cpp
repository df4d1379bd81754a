#include "runtime/src/context/context.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/fd.h"
#include "contract/environment.h"
#include "contract/rank_process.h"
#include "runtime/src/message/message_engine.h"

namespace ddl::runtime {
namespace {

/// How long a failing call waits until its rank's partners on other hosts have been notified.
constexpr std::chrono::seconds kForwarding{1};

/// How long a rank that leaves waits for a last comparison of clocks, for a timeline of the launcher: the rank that it
/// asks may have left.
constexpr std::chrono::milliseconds kLastComparison{200};

/// The failure of a call that makes a set: the cause, if that is an abort of the parent, and the ranks that this rank
/// waited for, if others gave up waiting.
Failure failure_in(const Call& call, const AbortDomain& parent, const Error& error) {
  if (!parent.is_raised()) return to_failure(error);
  Failure failure = parent.describe(call, true);
  if (failure.status == DDL_ERROR_TIMEOUT && failure.message.find(error.message()) == std::string::npos)
    failure.message += "; this rank was joining: " + error.message();
  return failure;
}

/// A line on stderr. Not by stdio, whose lock another thread may hold, and not if nobody reads the pipe and it is
/// full.
void print_unless_full(std::string line) {
  constexpr int kMilliseconds = 500;
  pollfd error_output{STDERR_FILENO, POLLOUT, 0};
  if (retry_eintr([&] { return ::poll(&error_output, 1, kMilliseconds); }) != 1) return;
  // A pipe that poll() calls writable takes this many bytes at once.
  line.resize(std::min<std::size_t>(line.size(), PIPE_BUF - 1));
  line += '\n';
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

/// The limit of the world's connections: the launcher of an elastic job says that a rank is lost.
ConnectLimit launcher_limit(const JobResources& job) {
  ConnectLimit limit;
  if (job.settings.elastic && job.record) limit.doorbell = job.record->doorbell();
  return limit;
}

/// The outcome of the making of a set, from each rank's failure to join it, "" if it has joined.
Outcome check_joined(const std::vector<std::string>& failures, const std::vector<int>& job_ranks) {
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    if (failures[rank].empty()) continue;
    return fail(DDL_ERROR_BOOTSTRAP,
                "no process set was made: rank " + std::to_string(job_ranks[rank]) + ": " + failures[rank]);
  }
  return {};
}

/// Calls a function when it goes out of scope.
template <class Function>
class AtEnd {
 public:
  explicit AtEnd(Function function) : function_(std::move(function)) {}
  ~AtEnd() { function_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  Function function_;
};

/// Counts a thread that is inside a function.
class Use {
 public:
  explicit Use(std::atomic<int>& users) : users_(users) { ++users_; }
  ~Use() { --users_; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  std::atomic<int>& users_;
};

}  // namespace

Context::Context(const Settings& settings, TransportMaker transports, FaultInjector fault)
    : job_{settings,
           std::move(transports),
           std::move(fault),
           settings.rank_record ? RankRecord::open(*settings.rank_record) : nullptr,
           nullptr,
           {},
           nullptr,
           nullptr,
           {},
           {},
           [this](const AbortDomain* set) { await_notified(set); }} {
  if (contract::EventRing* const ring = job_.record ? job_.record->ring() : nullptr)
    job_.events =
        std::make_unique<EventLog>(*ring, job_.record->ring_bytes(), job_.record, settings.clock_skew);
  if (job_.events && settings.elastic) job_.events->forget_clock_samples();
}

Result<std::unique_ptr<Context>> Context::join(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap,
                                               TransportMaker transports, FaultInjector fault,
                                               std::uint32_t first_sequence, std::shared_ptr<MpiWorld> mpi) {
  std::unique_ptr<Context> context(new Context(settings, std::move(transports), fault));
  context->job_.mpi = std::move(mpi);
  context->messages_ = std::make_shared<MessageEngine>(context->job_);
  // The world's fence follows, also after an error.
  const Status published = context->messages_->publish(*bootstrap);
  std::vector<int> job_ranks(static_cast<std::size_t>(bootstrap->membership().size));
  std::iota(job_ranks.begin(), job_ranks.end(), 0);
  DDL_ASSIGN(world, ProcessSet::join(
                        context->job_, std::move(bootstrap), std::move(job_ranks), std::move(fault),
                        [self = context.get()](const AbortNotice& notice) { self->abort_sets(notice); },
                        launcher_limit(context->job_), first_sequence));
  context->world_ = std::move(world);
  DDL_TRY(published);
  DDL_TRY(context->messages_->join(context->world_->connections(), context->world_->bootstrap()));
  context->world_->show(DDL_WORLD);
  if (context->job_.record) context->job_.record->has_joined();
  if (context->job_.events) context->recording_.emplace(*context->world_, *context->job_.events);
  if (context->job_.events && settings.elastic) {
    contract::Event mark;
    mark.kind = contract::Event::Kind::kMark;
    context->job_.events->moment(mark, "generation " + std::to_string(context->generation()) + ": rank " +
                                           std::to_string(context->rank()) + " of " +
                                           std::to_string(context->size()));
  }
  const bool launcher_records = context->job_.record && context->job_.record->ring() != nullptr;
  if (!settings.timeline_file.empty() && !launcher_records) {
    const Outcome started = context->start_timeline(settings.timeline_file, settings.timeline_bytes);
    if (!started) {
      return fail(ErrorCode::kInvalidArgument, std::string(contract::env::kTimeline) + " or " +
                                                   contract::env::kHorovodTimeline + ": " +
                                                   started.error().message);
    }
  }
  context->reports_first_ = settings.report_start && context->rank() == 0;
  return context;
}

Context::~Context() {
  if (world_) (void)leave();
}

int Context::generation() const {
  return job_.settings.elastic ? static_cast<int>(world_->membership().generation) - 1 : -1;
}

std::shared_ptr<ProcessSet> Context::set(std::uint64_t id) const {
  // The world lives as long as this: no count of users, which would cost each call two locked instructions.
  if (id == DDL_WORLD) return {std::shared_ptr<ProcessSet>(), world_.get()};
  const std::shared_lock lock(mutex_);
  const auto found = sets_.find(id);
  return found == sets_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<ProcessSet>> Context::sets() const {
  const std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<ProcessSet>> all;
  for (const auto& [id, set] : sets_) all.push_back(set);
  return all;
}

std::optional<std::string> Context::open_tensor() const {
  std::optional<std::string> name = world_->open_tensor();
  const std::shared_lock lock(mutex_);
  for (auto set = sets_.begin(); !name && set != sets_.end(); ++set) name = set->second->open_tensor();
  return name;
}

void Context::abort_sets(const AbortNotice& notice) const {
  messages_->abort(notice);
  for (const auto& set : sets()) set->abort().raise(notice);
}

Outcome Context::run(ProcessSet& set, const Request& request, double timeout_seconds) {
  CallScope call(set, timeout_seconds);
  if (call.outcome) call.outcome = set.collective(request, call.deadline());
  if (&set == world_.get() && call.outcome && reports_first_) {
    reports_first_ = false;
    set.bootstrap().notify_launcher(contract::kFirstCollectiveEvent);
  }
  return call.finish();
}

bool Context::repeat(const Call& call, const std::uint64_t* counts, const void* send, void* recv,
                     Outcome& outcome) {
  CallScope scope(*world_);
  if (!scope.outcome) return false;
  const SmallCall* const small = world_->repeated_by(call, counts, send, recv);
  if (small == nullptr) return false;
  if (Outcome made = world_->repeat(*small, send, recv, scope.deadline()); !made) {
    scope.outcome = std::move(made);
    outcome = scope.finish();
  }
  return true;
}

void Context::await_notified(const AbortDomain* set) const {
  await_own_abort();
  if (set == nullptr || !set->is_raised()) return;
  // Before the call returns: the process may exit at once, and the launcher must then know that its exit is a
  // consequence.
  if (job_.record) job_.record->has_lost(set->notice().rank);
  spread(set->notice());
}

void Context::spread(const AbortNotice& notice) const {
  world_->abort().raise(notice);
  abort_sets(notice);
  const Deadline deadline = Deadline::after(kForwarding);
  world_->wait_forwarded(deadline);
  for (const auto& set : sets()) set->wait_forwarded(deadline);
}

Outcome Context::start_timeline(const std::string& path, std::uint64_t max_bytes) {
  if (!recording_) return fail(DDL_ERROR_UNSUPPORTED, "there is no memory for the events of a timeline");
  CallScope call(*world_);
  if (call.outcome) call.outcome = recording_->start(path, max_bytes, call.deadline());
  return call.finish();
}

Outcome Context::stop_timeline() {
  if (!recording_) return fail(DDL_ERROR_INVALID_ARGUMENT, "no timeline is recorded");
  CallScope call(*world_);
  if (call.outcome) call.outcome = recording_->stop(call.deadline());
  return call.finish();
}

void Context::end_recording() {
  if (!recording_ || !recording_->is_on()) return;
  try {
    write_recording();
  } catch (const std::exception& error) {
    print_unless_full(std::string("libddl: no timeline was written: ") + error.what());
    recording_.reset();
  }
}

void Context::write_recording() {
  Outcome written = stop_timeline();
  if (written && rank() == 0) {
    print_unless_full("libddl: the timeline is in " + recording_->path() + ": open it at ui.perfetto.dev");
  }
  if (!written && recording_->is_on()) {
    if (rank() == 0) {
      print_unless_full("libddl: the timeline in " + recording_->path() +
                        " lacks ranks that could not be asked: " + written.error().message);
    }
    written = recording_->salvage("the job had failed");
  }
  if (!written && rank() == 0)
    print_unless_full("libddl: no timeline was written: " + written.error().message);
}

void Context::abort(int code, const std::string& text, bool ends_process) {
  AbortState before = AbortState::kNone;
  if (!own_abort_.compare_exchange_strong(before, AbortState::kRunning)) return await_own_abort();
  // A step that fails, for want of memory, does not keep the others from being done.
  const auto attempt = [](auto step) {
    try {
      step();
    } catch (const std::exception&) {
    }
  };
  // First the ranks, then the launcher, whose signal may end them before they can report the cause.
  const Member& self = world_->self();
  attempt([&] { spread(AbortNotice::of(AbortReason::kAborted, self, text, code)); });
  attempt([&] {
    print_unless_full("libddl: " + self.describe() + " aborted the job with code " + std::to_string(code) +
                      (text.empty() ? "" : ": ") + text);
  });
  attempt([&] { world_->bootstrap().abort_job(code, text); });
  if (ends_process) ::_exit(code);
  own_abort_ = AbortState::kDone;
  own_abort_.notify_all();
}

void Context::await_own_abort() const { own_abort_.wait(AbortState::kRunning); }

Outcome Context::make_set(ProcessSet& parent, std::span<const std::int32_t> list, std::uint64_t& id) {
  CallScope call(parent);
  const std::vector<std::uint64_t> names(list.begin(), list.end());
  Request compare;
  compare.call.kind = CallKind::kMakeSets;
  compare.call.count = list.size();
  compare.call.counts = digest_of(names) | 1;
  if (call.outcome) call.outcome = parent.collective(compare, call.deadline());
  if (call.outcome) call.outcome = join_set(parent, {list.begin(), list.end()}, call.deadline(), id);
  return call.finish();
}

Outcome Context::split_set(ProcessSet& parent, Coloring own, std::uint64_t& id) {
  CallScope call(parent);
  Request compare;
  compare.call.kind = CallKind::kMakeSets;
  if (call.outcome) call.outcome = parent.collective(compare, call.deadline());
  if (call.outcome) call.outcome = join_color(parent, own, call.deadline(), id);
  return call.finish();
}

Outcome Context::join_color(ProcessSet& parent, Coloring own, CallDeadline deadline, std::uint64_t& id) {
  std::string text(sizeof own, '\0');
  std::memcpy(text.data(), &own, sizeof own);
  auto texts = gather_texts(parent, text, deadline);
  if (!texts) return fail(failure_in(parent.call(), parent.abort(), texts.error()));
  std::vector<Coloring> all(texts->size());
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    std::memcpy(&all[rank], (*texts)[rank].data(), sizeof own);
  return join_set(parent, members_of_color(all, parent.rank()), deadline, id);
}

Outcome Context::join_set(ProcessSet& parent, const std::vector<int>& members, CallDeadline deadline,
                          std::uint64_t& id) {
  id = DDL_NO_PROCESS_SET;
  parent.pass(CallKind::kMakeSets, FaultPoint::kBeforeJoining);
  const std::uint32_t made = parent.count_made();
  const GatherTexts gather = [&](const std::string& own) -> Result<std::vector<std::string>> {
    DDL_ASSIGN(texts, gather_texts(parent, own, deadline));
    std::vector<std::string> of_members;
    for (const int rank : members) of_members.push_back(std::move(texts[rank]));
    return of_members;
  };
  std::shared_ptr<ProcessSet> set;
  std::string failure;
  if (std::find(members.begin(), members.end(), parent.rank()) != members.end()) {
    auto joined = join_members(parent, members, made, gather, deadline);
    if (joined) {
      set = *std::move(joined);
    } else {
      failure = joined.error().message();
    }
  } else if (auto fenced = gather("{}"); !fenced) {
    failure = fenced.error().message();
  }
  parent.pass(CallKind::kMakeSets, FaultPoint::kAfterJoining);
  // A set that some of its ranks could not join cannot be used by the others either. A rank that could not join in
  // time still reports that, and the others wait for it, so that only ranks that are really missing are named.
  auto failures = gather_texts(parent, failure, {deadline.later(1), deadline.seconds});
  // An aborted set is left without waiting for farewells.
  if (set && parent.abort().is_raised()) set->abort().raise(parent.abort().notice());
  if (!failures) return fail(failure_in(parent.call(), parent.abort(), failures.error()));
  DDL_TRY(check_joined(*failures, parent.job_ranks()));
  parent.pass(CallKind::kMakeSets, FaultPoint::kAfterMaking);
  if (set) id = keep(std::move(set));
  return {};
}

Result<std::shared_ptr<ProcessSet>> Context::join_members(const ProcessSet& parent,
                                                          const std::vector<int>& members,
                                                          std::uint64_t number, GatherTexts gather,
                                                          CallDeadline deadline) {
  std::vector<int> job_ranks;
  for (const int rank : members) job_ranks.push_back(parent.job_ranks()[rank]);
  auto bootstrap =
      std::make_unique<SetBootstrap>(membership_of(parent.membership(), members, number), std::move(gather));
  DDL_ASSIGN(joined, ProcessSet::join(
                         job_, std::move(bootstrap), std::move(job_ranks), job_.fault.of_set(),
                         [this](const AbortNotice& notice) { world_->abort().raise(notice); },
                         parent.limit_of(deadline)));
  return std::shared_ptr<ProcessSet>(std::move(joined));
}

std::uint64_t Context::keep(std::shared_ptr<ProcessSet> set) {
  std::uint64_t id = DDL_NO_PROCESS_SET;
  {
    const std::unique_lock lock(mutex_);
    id = ++last_id_;
    sets_.emplace(id, set);
    set->show(id);
  }
  // A thread that aborted all sets just before did not know this one.
  if (world_->abort().is_raised()) set->abort().raise(world_->abort().notice());
  return id;
}

Outcome Context::make_set_by_members(const std::vector<int>& members, const std::string& name,
                                     const ddl_store& store, std::uint64_t& id) {
  if (is_in_forked_child()) return fail(inherited_by_fork());
  const Use use(users_);
  const double seconds =
      store.timeout_seconds > 0 ? store.timeout_seconds : job_.settings.start_timeout_seconds;
  SetMaking making;
  making.name = name;
  making.ranks = members;
  making.own = static_cast<int>(std::find(members.begin(), members.end(), rank()) - members.begin());
  making.call.kind = CallKind::kMakeSets;
  making.call.count = members.size();
  making.deadline = CallDeadline::after(seconds);
  bool is_in_use = false;
  {
    const std::unique_lock lock(mutex_);
    NamedSet& named = named_sets_[name];
    // Counted on all members, also if one of them refuses.
    making.call.number = ++named.made;
    is_in_use = named.is_being_made || sets_.contains(named.id);
    if (!is_in_use) named.is_being_made = true;
  }
  making.key = "ddl/" + std::to_string(world_->membership().generation) + "/" + name + "/" +
               std::to_string(making.call.number);
  StoreExchange exchange(store, world_->abort(), making);
  if (is_in_use) {
    exchange.give_up(DDL_ERROR_INVALID_ARGUMENT, "a set of this name is in use; free it first");
    return fail(*exchange.failure());
  }
  const AtEnd made([&] {
    const std::unique_lock lock(mutex_);
    NamedSet& named = named_sets_[name];
    named.is_being_made = false;
    named.id = id;
  });
  Outcome joined = join_by_store(exchange, making, id);
  if (!joined && world_->abort().is_raised()) job_.on_failure(&world_->abort());
  return joined;
}

Outcome Context::join_by_store(StoreExchange& exchange, const SetMaking& making, std::uint64_t& id) {
  job_.fault.pass(CallKind::kMakeSets, FaultPoint::kBeforeJoining);
  const std::array<std::uint64_t, 2> number{digest_of(making.name), making.call.number};
  const auto gather = [&](const std::string& own) { return exchange.gather(own); };
  auto joined = join_members(*world_, making.ranks, digest_of(number), gather, making.deadline);
  job_.fault.pass(CallKind::kMakeSets, FaultPoint::kAfterJoining);
  if (exchange.failure()) return fail(*exchange.failure());
  auto failures = exchange.gather(joined ? "" : joined.error().message());
  const AbortDomain& abort = world_->abort();
  // An aborted set is left without waiting for farewells.
  if (joined && abort.is_raised()) (*joined)->abort().raise(abort.notice());
  if (exchange.failure()) return fail(*exchange.failure());
  if (abort.is_raised()) return fail(abort.describe(making.call, true));
  DDL_TRY(check_joined(*failures, making.ranks));
  job_.fault.pass(CallKind::kMakeSets, FaultPoint::kAfterMaking);
  id = keep(*std::move(joined));
  return {};
}

Outcome Context::free_set(std::uint64_t id) {
  if (id == DDL_NO_PROCESS_SET) return {};
  // A child, also one that destroys copies of its parent's objects, must not leave in the place of its parent.
  if (is_in_forked_child()) return fail(inherited_by_fork());
  if (id == DDL_WORLD) {
    return fail(DDL_ERROR_INVALID_ARGUMENT, "DDL_WORLD cannot be freed; ddl_finalize() leaves it");
  }
  const Use use(users_);
  const std::shared_ptr<ProcessSet> found = set(id);
  if (!found)
    return fail(DDL_ERROR_INVALID_ARGUMENT, "process set " + std::to_string(id) + " does not exist");
  if (auto left = found->leave(); !left && left.error().status == DDL_ERROR_BUSY) return left;
  messages_->forget_set(found->membership().generation);
  const std::unique_lock lock(mutex_);
  sets_.erase(id);
  return {};
}

Outcome Context::allocate(std::uint64_t bytes, void*& memory) {
  memory = nullptr;
  if (is_in_forked_child()) return fail(inherited_by_fork());
  const Use use(users_);
  if (world_->abort().is_raised()) {
    return fail(DDL_ERROR_ABORTED, "the context was aborted: a rank may still write to the shared heap");
  }
  return job_.heap->allocate(bytes, memory);
}

Outcome Context::free_memory(void* memory) {
  // The memory is shared with the parent: freed, it would be zero there too.
  if (is_in_forked_child()) return fail(inherited_by_fork());
  const Use use(users_);
  if (job_.device_memory.free(memory)) return {};
  return job_.heap->free(memory, world_->abort().is_raised());
}

Outcome Context::leave() {
  await_own_abort();
  const auto all = sets();
  const bool is_idle = users_ == 0 && messages_->is_idle() && world_->is_idle() &&
                       std::all_of(all.begin(), all.end(), [](const auto& set) { return set->is_idle(); });
  if (!is_idle) return fail(DDL_ERROR_BUSY, "another thread is inside a call of this context");
  messages_->leave();
  end_recording();
  if (job_.events && job_.events->is_exact() && !world_->abort().is_raised())
    job_.events->compare_clock_now(Deadline::after(kLastComparison));
  Outcome all_left;
  for (const auto& set : all) {
    if (auto left = set->leave(); !left && all_left) all_left = std::move(left);
  }
  Outcome left = world_->leave();
  job_.watcher.stop();
  return left ? all_left : left;
}

}  // namespace ddl::runtime
