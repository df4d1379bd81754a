#include "runtime/src/context/process_set.h"

#include <algorithm>
#include <cstddef>

#include "runtime/src/bootstrap/duplicate_bootstrap.h"
#include "runtime/src/collective/call_agreement.h"
#include "runtime/src/collective/canonical_tree.h"
#include "runtime/src/common/settings.h"
#include "runtime/src/shm/segment.h"
#include "runtime/src/shm/shared_heap.h"

namespace ddl::runtime {
namespace {

/// The address space for all pairs of a host's ranks together, as far as no slot is smaller or larger than useful. It
/// costs memory only when it is used.
constexpr std::size_t kPairsAddressSpace = std::size_t{4} << 30;
constexpr std::size_t kMinPairSlot = std::size_t{4} << 10;
constexpr std::size_t kMaxPairSlot = std::size_t{256} << 10;

/// The bytes of a slot of each pair of this number of ranks of a host; 0 if there are no pairs, or limits leave no
/// space.
std::size_t pair_slot_bytes(int ranks, std::size_t slot_bytes) {
  if (ranks < 2) return 0;
  const auto count = static_cast<std::size_t>(ranks);
  const std::size_t room = has_plenty_of_address_space() ? kPairsAddressSpace : 2 * count * slot_bytes;
  const std::size_t slots = 2 * count * (count - 1);
  const std::size_t fitting = std::clamp(room / slots, kMinPairSlot, kMaxPairSlot) / kLineBytes * kLineBytes;
  return fitting * slots > room && !has_plenty_of_address_space() ? 0 : fitting;
}

/// Of the rings in the segment, which cost memory only while a timeline is recorded.
std::uint32_t event_capacity() {
  using contract::EventRing;
  return has_plenty_of_address_space() ? EventRing::kMaxCapacity : EventRing::kUsuallyKept;
}

std::size_t cluster_slot_bytes(const Settings& settings, int ranks, int max_local_size) {
  return SlotAreas::of(settings.staging_bytes.value_or(Settings::kClusterStagingBytes), ranks, max_local_size)
      .slot_bytes();
}

/// For a set of which this rank is a member: staging slots by the settings and the layout, slots for pairs as the
/// address space allows, and a part of the shared heap for each rank if has_heap. The same on all ranks of a host.
ConnectionPlan plan_connections(const Settings& settings, const Membership& membership, bool has_heap,
                                std::uint32_t first_sequence) {
  const HostLayout& layout = membership.layout;
  ConnectionPlan plan;
  SegmentConfig& segment = plan.segment;
  segment.first_sequence = first_sequence;
  segment.exchange = settings.exchange;
  segment.has_duplicate = true;
  // At least a cache line for every rank's part.
  segment.slot_bytes =
      std::max(settings.staging_bytes.value_or(Settings::kHostStagingBytes), membership.size * kLineBytes);
  if (layout.host_count() > 1)
    segment.slot_bytes = cluster_slot_bytes(settings, membership.size, layout.max_local_size());
  const int local = std::ssize(layout.local());
  if (has_heap) segment.heap_bytes = heap_share(local);
  segment.pair_slot_bytes = pair_slot_bytes(local, segment.slot_bytes);
  plan.remote_pair_slot_bytes = cluster_slot_bytes(settings, 2, 1);

  std::vector<int> partners;
  if (layout.host_count() > kMeshHosts) partners = partner_hosts(layout.host_count(), layout.own);
  for (int host = 0; host < layout.host_count(); ++host) {
    if (host == layout.own) continue;
    const bool is_first =
        layout.host_count() <= kMeshHosts || std::binary_search(partners.begin(), partners.end(), host);
    (is_first ? plan.first_hosts : plan.further_hosts).push_back(host);
  }
  return plan;
}

}  // namespace

Result<std::unique_ptr<ProcessSet>> ProcessSet::join(JobResources& job, std::unique_ptr<Bootstrap> bootstrap,
                                                     std::vector<int> job_ranks, FaultInjector fault,
                                                     Connections::OnAbort on_abort, const ConnectLimit& limit,
                                                     std::uint32_t first_sequence) {
  const bool is_world = job.heap == nullptr;
  bootstrap = std::make_unique<SharedBootstrap>(std::move(bootstrap));
  // Other sets have the world's backend. An error is reported after the fence in connect(), which every rank must
  // reach.
  const Status put = is_world ? put_operations(*bootstrap, job.settings) : Status();
  ConnectionPlan plan = plan_connections(job.settings, bootstrap->membership(), is_world, first_sequence);
  if (is_world && !job.events) plan.segment.event_capacity = event_capacity();
  DDL_ASSIGN(connections, Connections::connect(job, *bootstrap, std::move(job_ranks), std::move(plan),
                                               std::move(fault), std::move(on_abort), limit));
  DDL_TRY(put);
  DDL_ASSIGN(backend, make_backend(job, *bootstrap, *connections));
  DDL_TRY(connections->watch());
  connections->choose_stores();
  return std::unique_ptr<ProcessSet>(
      new ProcessSet(job, std::move(bootstrap), std::move(connections), std::move(backend)));
}

ProcessSet::ProcessSet(JobResources& job, std::unique_ptr<Bootstrap> bootstrap,
                       std::unique_ptr<Connections> connections, std::unique_ptr<CollectiveBackend> backend)
    : job_(job),
      bootstrap_(std::move(bootstrap)),
      connections_(std::move(connections)),
      backend_(std::move(backend)),
      fork_count_(fork_count()),
      tally_(job.record, CallTier::kOrdered) {}

ProcessSet::~ProcessSet() { (void)leave(); }

void ProcessSet::show(std::uint64_t id) {
  if (job_.record) shown_ = job_.record->add_set(membership().generation, static_cast<std::uint32_t>(id));
}

Outcome ProcessSet::collective(const Request& request, CallDeadline deadline) {
  if (shown_ != nullptr && request.peer >= 0) {
    const int peer = job_ranks()[request.peer];
    shown_->peer.store(peer + 1, std::memory_order_relaxed);
  }
  return recorded(request.call, request.call.count * request.element_size,
                  [&] { return backend_->run(request, deadline); });
}

Outcome ProcessSet::repeat(const SmallCall& small, const void* send, void* recv, CallDeadline deadline) {
  return recorded(small.call(), small.bytes(), [&] {
    return small.repeat(static_cast<const std::byte*>(send), static_cast<std::byte*>(recv), deadline);
  });
}

template <class Run>
Outcome ProcessSet::recorded(const Call& call, std::size_t bytes, Run run) {
  EventLog* const log = job_.log();
  if (shown_ == nullptr && log == nullptr) return run();
  const std::uint64_t number = backend_->next_number();
  const RecordedCall shown(shown_ == nullptr ? nullptr : &shown_->call, call.kind, number);
  contract::Event event = event_of(call, bytes);
  event.kind = contract::Event::Kind::kCall;
  event.generation = membership().generation;
  event.call = number;
  LoggedInterval logged(log, event);
  Outcome outcome = run();
  logged.set(outcome ? DDL_OK : outcome.error().status, static_cast<std::uint8_t>(backend_->last_path()));
  if (log != nullptr) tally_.add(call.kind, event.bytes, logged.began(), logged.end());
  return outcome;
}

std::shared_ptr<Engine> ProcessSet::engine() {
  const std::lock_guard lock(mutex_);
  if (!engine_) {
    Prediction::Limits limits;
    limits.fusion_bytes = job_.settings.fusion_bytes;
    engine_ = std::make_shared<Engine>(job_, *connections_, *backend_, limits, shown_);
  }
  return engine_;
}

std::optional<std::string> ProcessSet::open_tensor() const {
  const std::lock_guard lock(mutex_);
  return engine_ ? engine_->open_tensor() : std::nullopt;
}

Outcome ProcessSet::check_usable(bool has_lock) const {
  if (is_in_forked_child()) return fail(inherited_by_fork());
  if (has_lock && joining_ != 0) {
    return fail(DDL_ERROR_INVALID_ARGUMENT,
                "this rank has joined (ddl_join): it makes no ordered calls of this process set until all "
                "ranks have");
  }
  if (!has_lock) return fail(DDL_ERROR_BUSY, "another thread is inside a call of this process set");
  if (is_left_) return fail(DDL_ERROR_INVALID_ARGUMENT, "this process set has been freed");
  if (ended_by_) return fail(DDL_ERROR_ABORTED, "the context was aborted earlier: " + *ended_by_);
  return {};
}

void ProcessSet::note(const Failure& failure) {
  // A mismatch that all ranks have found, or an error about this rank's own arguments, does not end the set. One that was
  // found beside data on their way has aborted it.
  const bool has_only_mismatch = failure.status == DDL_ERROR_MISMATCH && !abort().is_raised();
  if (has_only_mismatch || failure.status == DDL_ERROR_INVALID_ARGUMENT ||
      failure.status == DDL_ERROR_UNSUPPORTED || failure.status == DDL_ERROR_BOOTSTRAP)
    return;
  connections_->report_abort();
  ended_by_ = failure.message;
}

Outcome ProcessSet::join(Engine& engine, int& last) {
  struct Joining {
    explicit Joining(std::atomic<int>& count) : threads(count) { ++threads; }
    ~Joining() { --threads; }
    Joining(const Joining&) = delete;
    Joining& operator=(const Joining&) = delete;
    std::atomic<int>& threads;
  };
  const Joining joining(joining_);
  return engine.join(last);
}

bool ProcessSet::is_idle() const {
  const std::lock_guard lock(mutex_);
  return !call_lock_.is_held() && (!engine_ || engine_->is_idle());
}

Outcome ProcessSet::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (engine_ && !engine_->is_idle())
      return fail(DDL_ERROR_BUSY, "another thread waits for a named tensor of this process set");
  }
  const std::unique_lock lock(call_lock_, std::try_to_lock);
  if (!lock) return check_usable(false);
  if (std::exchange(is_left_, true)) return {};
  tally_.show();
  // Handles that the program still has keep the engine, but it uses nothing of this any more.
  if (engine_) engine_->close();
  const Outcome ended = backend_->end();
  Outcome caught_up = connections_->leave();
  // The backend uses the links.
  backend_.reset();
  connections_->close();
  if (job_.record) job_.record->remove_set(std::exchange(shown_, nullptr));
  DDL_TRY(bootstrap_->leave().map_error(to_failure));
  return caught_up ? ended : caught_up;
}

CallScope::CallScope(ProcessSet& set, double timeout_seconds) : set_(set) {
  const double seconds = timeout_seconds > 0 ? timeout_seconds : set.job_.settings.timeout_seconds;
  lock_ = std::unique_lock(set.call_lock_, std::try_to_lock);
  if (!set.is_usable(lock_.owns_lock())) outcome = set.check_usable(lock_.owns_lock());
  is_refused_ = !outcome;
  if (outcome && seconds > 0) deadline_ = CallDeadline::after(seconds);
}

Outcome CallScope::finish() {
  if (!outcome && !set_.is_in_forked_child()) {
    if (!is_refused_) set_.note(outcome.error());
    set_.job_.on_failure(lock_.owns_lock() ? &set_.abort() : nullptr);
  }
  return std::move(outcome);
}

}  // namespace ddl::runtime
