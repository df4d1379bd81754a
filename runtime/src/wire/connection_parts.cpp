#include "runtime/src/wire/connection_parts.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "runtime/src/shm/doorbell.h"
#include "runtime/src/shm/fd_passing.h"

namespace ddl::runtime {
namespace {

/// A rank that has died does not listen any more either. A rank that notices its death reports it within this time.
constexpr std::chrono::seconds kDeathReport{1};

/// The index of one of two members in the segment of their pair.
constexpr int index_in_pair(int member, int other) { return member < other ? 0 : 1; }

/// The membership of a pair, in which the lower rank becomes 0.
Membership membership_of_pair(const Membership& set, int other) {
  Membership pair;
  pair.generation = set.generation;
  pair.host = set.host;
  pair.size = 2;
  pair.rank = index_in_pair(set.rank, other);
  const bool is_here = set.layout.host_of(other) == set.layout.own;
  pair.layout.hosts =
      is_here ? std::vector<std::vector<int>>{{0, 1}} : std::vector<std::vector<int>>{{0}, {1}};
  pair.layout.own = is_here ? 0 : pair.rank;
  return pair;
}

/// A segment of this process alone.
Status make_own_segment(SharedGroup& group, const SegmentConfig& config) {
  const std::size_t bytes = Segment::bytes_for(1, config);
  DDL_ASSIGN(fd, make_sealed_memory(bytes));
  DDL_ASSIGN(memory, MappedMemory::map_shared(fd.get(), bytes));
  group.memory = std::make_shared<const MappedMemory>(std::move(memory));
  group.segment = Segment::create({group.memory->data(), bytes}, 1, config);
  return {};
}

}  // namespace

Connections::OnAbort Connections::Parts::raising() const {
  return [whole = &whole_](const AbortNotice& notice) { whole->abort_.raise(notice); };
}

std::vector<std::shared_ptr<Connections>> Connections::Parts::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Connections>> all;
  if (duplicate_) all.push_back(duplicate_);
  for (const auto& [rank, pair] : pairs_) all.push_back(pair);
  return all;
}

void Connections::Parts::abort(const AbortNotice& notice) const {
  for (const auto& part : all()) part->abort_.raise(notice);
  // A thread of this rank may sleep until the duplicate is connected.
  const Segment& segment = whole_.group_.segment;
  if (segment.has_duplicate()) Doorbells(segment.duplicate(), whole_.group_.index).ring_own();
}

void Connections::Parts::leave() {
  for (const auto& part : all()) {
    (void)part->leave();
    part->close();
  }
  leave_unbegun_pairs();
  leave_duplicate();
}

std::vector<int> Connections::Parts::fds() const {
  return duplicate_transport_.links ? duplicate_transport_.links->fds() : std::vector<int>();
}

// Pairs.

tl::expected<Connections*, Failure> Connections::Parts::connect_pair(int rank, const Call& call,
                                                                     CallDeadline deadline) {
  auto pair = make_pair(rank);
  const Status linked = pair ? link_pair(**pair, rank, deadline) : fail(pair.error());
  if (!linked) {
    const Failure failure = pair_failure(rank, linked.error(), call, deadline);
    // The other rank may have completed its side of the link, and takes its end for a death unless it gets the cause.
    if (pair && whole_.abort_.is_raised()) (*pair)->abort_.raise(whole_.abort_.notice());
    return fail(failure);
  }
  Connections* const made = pair->get();
  {
    const std::lock_guard lock(mutex_);
    pairs_.emplace(rank, *std::move(pair));
  }
  // A thread that raised an abort in the pairs just before has not raised it in this one.
  if (whole_.abort_.is_raised()) made->abort_.raise(whole_.abort_.notice());
  return made;
}

Result<SharedGroup> Connections::Parts::pair_memory(int other) const {
  SharedGroup group;
  const int own = whole_.group_.index;
  if (other < 0) {
    group.members = {whole_.self()};
    SegmentConfig config;
    config.slot_bytes = whole_.plan_.remote_pair_slot_bytes;
    DDL_TRY(make_own_segment(group, config));
  } else {
    if (!whole_.group_.segment.has_pairs()) {
      return fail(
          ErrorCode::kUnavailable,
          "a limit (ulimit -v, ulimit -f) leaves no space for the memory of this number of pairs of ranks");
    }
    group.memory = whole_.group_.memory;
    group.segment = whole_.group_.segment.pair(own, other);
    group.index = index_in_pair(own, other);
    group.members = {whole_.group_.members[std::min(own, other)],
                     whole_.group_.members[std::max(own, other)]};
  }
  group.cpus = whole_.group_.cpus;
  // Each process has its own doorbell. An abort of the pair aborts the set, and this rings the other process's
  // doorbell.
  group.doorbell.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!group.doorbell) return fail_errno("eventfd");
  return group;
}

Result<std::shared_ptr<Connections>> Connections::Parts::make_pair(int rank) {
  const bool is_here = whole_.layout().host_of(rank) == whole_.layout().own;
  DDL_ASSIGN(group, pair_memory(is_here ? whole_.layout().local_rank(rank) : -1));
  const auto job_rank = [this](int of) { return whole_.job_ranks_[of]; };
  const int own = whole_.membership_.rank;
  return std::shared_ptr<Connections>(
      new Connections(whole_.job_, whole_.bootstrap_, membership_of_pair(whole_.membership_, rank),
                      {job_rank(std::min(own, rank)), job_rank(std::max(own, rank))}, {}, std::move(group),
                      whole_.fault_, raising(), LinkUse::kPair));
}

Status Connections::Parts::link_pair(Connections& pair, int rank, CallDeadline deadline) {
  const int host = whole_.layout().host_of(rank);
  if (host == whole_.layout().own) {
    DDL_TRY(pair.watch());
    const auto given = whole_.job_.settings.stores;
    pair.channel_.choose_stores(StoreChoice(
        given.value_or(Stores::kPlain), given ? StoreChoice::Origin::kGiven : StoreChoice::Origin::kUnknown));
    record_begun(whole_.layout().local_rank(rank));
    return {};
  }
  auto links = whole_.link_transport_->connect(
      whole_.bootstrap_, {{1 - pair.layout().own, rank, host < whole_.layout().own}},
      {LinkUse::kPair, pair.channel_.slot_bytes(), {deadline.deadline, whole_.abort_.doorbell()}});
  if (!links) {
    std::vector<PeerLink> established = whole_.established_links();
    pair.control_ = std::make_shared<ControlLinks>(established, pair.abort_);
    return fail(std::move(links.error().during("connecting " + whole_.self().label() + " to other hosts by " +
                                               whole_.link_transport_->name())));
  }
  links->front().peer.rank = whole_.job_ranks_[rank];
  pair.report_links(*links);
  pair.add_links(*std::move(links));
  return pair.watch();
}

// The duplicate.

DuplicateTransport DuplicateTransport::make(JobResources& job, Bootstrap& bootstrap) {
  DuplicateTransport duplicate;
  duplicate.bootstrap = std::make_unique<DuplicateBootstrap>(bootstrap);
  const Membership& membership = duplicate.bootstrap->membership();
  if (membership.layout.host_count() > 1)
    duplicate.links = job.transports.between_hosts(membership, job.fault);
  return duplicate;
}

Result<Connections*> Connections::Parts::connect_duplicate(const CallDeadline& deadline) {
  SharedGroup group;
  group.memory = whole_.group_.memory;
  group.segment = whole_.group_.segment.duplicate();
  group.index = whole_.group_.index;
  group.members = whole_.group_.members;
  group.cpus = whole_.group_.cpus;
  group.doorbell.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!group.doorbell) return fail_errno("eventfd");
  DuplicateBootstrap& bootstrap = *duplicate_transport_.bootstrap;
  const auto on_abort = [this](const AbortNotice& notice) {
    // A rank that leaves a process set with open tensors ends the named tensors of that set. Ordered calls that need
    // this rank notice that it has left; all others go on.
    if (whole_.is_world_ || notice.reason != AbortReason::kLeft) whole_.abort_.raise(notice);
  };
  std::shared_ptr<Connections> made(new Connections(whole_.job_, bootstrap, bootstrap.membership(),
                                                    whole_.job_ranks_, whole_.plan_, std::move(group),
                                                    whole_.fault_, on_abort, LinkUse::kDuplicate));
  made->link_transport_ = std::move(duplicate_transport_.links);
  if (made->link_transport_) DDL_TRY(link_duplicate(*made, deadline));
  DDL_TRY(made->watch());
  made->channel_.choose_stores(whole_.first_choice_);
  {
    const std::lock_guard lock(mutex_);
    duplicate_ = made;
  }
  if (whole_.abort_.is_raised()) made->abort_.raise(whole_.abort_.notice());
  return made.get();
}

Status Connections::Parts::link_duplicate(Connections& duplicate, const CallDeadline& deadline) {
  // The others link when they submit their first tensor, however long that takes. A rank of this host that waits
  // for this one meanwhile lets it report who is missing.
  duplicate.abort_.set_waits_for_other_host(true);
  auto linked = duplicate.connect_hosts({deadline.deadline, whole_.abort_.doorbell()});
  if (linked) {
    duplicate.abort_.set_waits_for_other_host(false);
    return {};
  }
  const auto gone = duplicate.link_transport_->gone();
  // It may have left because some rank has died, which its farewell to the first connections tells.
  if (gone) (void)whole_.abort_.wait_raised(Deadline::after(kDeathReport));
  const std::string& why = linked.error().message();
  const Member& self = whole_.self();
  const AbortNotice notice =
      gone ? AbortNotice::of(AbortReason::kLeft, whole_.who_is(*gone))
      : deadline.deadline.has_passed()
          ? AbortNotice::of(AbortReason::kTimedOut, self, self.label() + " gave up: " + why)
          : AbortNotice::of_failed_link(linked.error(), self);
  if (!whole_.abort_.is_raised()) whole_.abort_.raise(notice);
  duplicate.abort_.raise(whole_.abort_.notice());
  return fail(std::move(linked.error()));
}

void Connections::Parts::leave_duplicate() const {
  const Segment& segment = whole_.group_.segment;
  if (!segment.has_duplicate() || whole_.abort_.is_raised()) return;
  // Ranks of this host may wait for tensors that this one never submits, inside a call or between two.
  if (!duplicate_) leave_segment(segment.duplicate(), whole_.group_.index, 1, -1);
  Doorbells::ring_all(segment.duplicate());
}

void Connections::Parts::record_begun(int other) const {
  const int own = whole_.group_.index;
  const auto word = static_cast<std::size_t>(other) / 64;
  // A leaving rank first marks itself as left and then reads this record; here the order is reversed, so at least one
  // of the two sees the other.
  whole_.group_.segment.pairs_record(own).begun[word].fetch_or(std::uint64_t{1} << (other % 64));
  // After an abort, pairs are notified of its cause, and a rank that leaves later is not the cause.
  if (whole_.abort_.has_left(other) && !whole_.abort_.is_raised())
    leave_segment(whole_.group_.segment.pair(own, other), index_in_pair(other, own), 1, -1);
}

void Connections::Parts::leave_unbegun_pairs() const {
  if (whole_.abort_.is_raised()) return;
  // Ranks of this host with which this one has made no transfer yet may wait for its first call.
  const Segment& segment = whole_.group_.segment;
  const auto own = static_cast<std::size_t>(whole_.group_.index);
  const auto& begun_here = segment.pairs_record(whole_.group_.index).begun;
  for (int other = 0; segment.has_pairs() && other < segment.size(); ++other) {
    const auto at = static_cast<std::size_t>(other);
    const std::uint64_t waits = segment.pairs_record(other).begun[own / 64].load() >> (own % 64) & 1;
    const std::uint64_t has_begun = begun_here[at / 64].load() >> (at % 64) & 1;
    if (waits != 0 && has_begun == 0)
      leave_segment(segment.pair(whole_.group_.index, other), index_in_pair(whole_.group_.index, other), 1,
                    -1);
  }
}

Failure Connections::Parts::pair_failure(int rank, const Error& error, const Call& call,
                                         CallDeadline deadline) const {
  // If pairs are unsupported, no rank waits for one, so the set is not aborted.
  const bool has_none = !whole_.link_transport_ || error.code() == ErrorCode::kUnavailable;
  if (has_none && !whole_.abort_.is_raised()) return {DDL_ERROR_UNSUPPORTED, error.message()};
  if (error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kClosed)
    (void)whole_.abort_.wait_raised(Deadline::after(kDeathReport));
  if (is_interruption(error) && !whole_.abort_.is_raised())
    whole_.abort_.raise(AbortNotice::of(AbortReason::kInterrupted, whole_.self()));
  if (!whole_.abort_.is_raised()) {
    const Member other = whole_.who_is(rank);
    switch (error.code()) {
      case ErrorCode::kTimeout: whole_.abort_.raise_timeout(deadline.seconds, call, other); break;
      case ErrorCode::kNotFound: whole_.abort_.raise(AbortNotice::of(AbortReason::kLeft, other)); break;
      default: whole_.abort_.raise(AbortNotice::of(AbortReason::kLost, other, error.message()));
    }
  }
  Failure failure = whole_.abort_.describe(call, true);
  // Host and pid of the partner come from the bootstrap, which takes long if a host is dead: only if the message
  // needs them.
  const bool names = failure.status == DDL_ERROR_TIMEOUT && whole_.link_transport_ != nullptr;
  return names ? with_awaited(std::move(failure), call, {whole_.who_is(rank)}) : failure;
}

}  // namespace ddl::runtime
