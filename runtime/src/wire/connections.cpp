#include "runtime/src/wire/connections.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "base/text.h"
#include "contract/environment.h"
#include "runtime/src/shm/doorbell.h"
#include "runtime/src/wire/connection_parts.h"

namespace ddl::runtime {
namespace {

/// How long a leaving rank waits until its partners have read its farewell: they may not get a CPU for long, and a
/// connection that is closed before that looks like a death.
constexpr std::chrono::seconds kFarewell{10};

/// Puts what the others need, then waits for all ranks in one fence.
Status rendezvous(JobResources& job, Bootstrap& bootstrap, Transport& within_host,
                  LinkTransport* between_hosts, const SegmentConfig& segment) {
  Status published = within_host.publish(bootstrap, segment);
  if (published && between_hosts != nullptr) published = between_hosts->publish(bootstrap);
  job.fault.pass(FaultPoint::kBeforeFence);
  auto fenced = bootstrap.fence(job.settings.start_deadline());
  if (!fenced && fenced.error().code() == ErrorCode::kTimeout && job.heap == nullptr) {
    std::array<char, 32> seconds{};
    std::snprintf(seconds.data(), seconds.size(), "%g", job.settings.start_timeout_seconds);
    return fail(std::move(fenced.error().during(
        std::string("not all ranks have arrived within ") + seconds.data() + " s (" +
        contract::env::kStartTimeoutSeconds + "): one may have failed before it could join")));
  }
  DDL_TRY(fenced);
  return published;
}

/// The heap of the job's ranks on this host, which the first connections bring.
SharedHeap& heap_of(JobResources& job, const SharedGroup& group) {
  if (!job.heap)
    job.heap = std::make_unique<SharedHeap>(group.segment.heap(), group.segment.heap_part(group.index));
  return *job.heap;
}

/// The log of events, likewise, unless the launcher has given this rank a ring.
void make_event_log(JobResources& job, const SharedGroup& group) {
  const std::span<std::byte> memory = group.segment.ring(group.index);
  if (job.events || memory.empty()) return;
  auto& ring = *reinterpret_cast<contract::EventRing*>(memory.data());
  job.events = std::make_unique<EventLog>(ring, memory.size() - contract::EventRing::kHeadBytes, group.memory,
                                          job.settings.clock_skew, EventLog::Keeps::kWhileRecording);
}

}  // namespace

Result<std::unique_ptr<Connections>> Connections::connect(JobResources& job, Bootstrap& bootstrap,
                                                          std::vector<int> job_ranks, ConnectionPlan plan,
                                                          FaultInjector fault, OnAbort on_abort,
                                                          const ConnectLimit& limit) {
  const Membership& membership = bootstrap.membership();
  const auto within_host = job.transports.within_host(membership, job.fault);
  std::unique_ptr<LinkTransport> between_hosts;
  if (membership.layout.host_count() > 1) between_hosts = job.transports.between_hosts(membership, job.fault);
  DuplicateTransport duplicate = DuplicateTransport::make(job, bootstrap);
  DDL_TRY(within_host->is_usable(membership));
  const Status duplicate_published = duplicate.publish();
  DDL_TRY(rendezvous(job, bootstrap, *within_host, between_hosts.get(), plan.segment));
  DDL_TRY(duplicate_published);
  DDL_ASSIGN(group, within_host->connect(bootstrap, limit));
  // Messages name ranks of the job.
  for (Member& member : group.members) member.rank = job_ranks[member.rank];
  make_event_log(job, group);

  std::unique_ptr<Connections> made(new Connections(job, bootstrap, membership, std::move(job_ranks),
                                                    std::move(plan), std::move(group), std::move(fault),
                                                    std::move(on_abort), LinkUse::kLane));
  made->link_transport_ = std::move(between_hosts);
  made->parts_->set_duplicate_transport(std::move(duplicate));
  if (made->link_transport_) DDL_TRY(made->connect_hosts(limit));
  return made;
}

Connections::Connections(JobResources& job, Bootstrap& bootstrap, Membership membership,
                         std::vector<int> job_ranks, ConnectionPlan plan, SharedGroup group,
                         FaultInjector fault, OnAbort on_abort, LinkUse use)
    : job_(job),
      bootstrap_(bootstrap),
      membership_(std::move(membership)),
      job_ranks_(std::move(job_ranks)),
      plan_(std::move(plan)),
      use_(use),
      is_world_(!job.heap),
      group_(std::move(group)),
      fault_(std::move(fault)),
      on_abort_(std::move(on_abort)),
      abort_(group_.segment, group_.members, group_.index, group_.doorbell.get()),
      policy_(WaitPolicy::for_group(group_.segment.size(), group_.cpus, job.settings.spin)),
      channel_(group_.segment, group_.members, abort_, group_.index, policy_, heap_of(job, group_), fault_,
               ArrivalWaits(job.record, use == LinkUse::kDuplicate ? CallTier::kNamed : CallTier::kOrdered)),
      parts_(std::make_unique<Parts>(*this)) {}

Connections::~Connections() {
  (void)leave();
  close();
}

bool Connections::has_lane() const {
  return layout().host_count() > 1 && membership_.local_rank() < layout().lane_count();
}

Result<std::vector<PeerLink>> Connections::link_to(const std::vector<int>& hosts, const ConnectLimit& limit) {
  const auto lane = static_cast<std::size_t>(membership_.local_rank());
  std::vector<LinkPartner> partners;
  for (const int host : hosts) {
    partners.push_back({host, layout().hosts[host][lane], host < layout().own});
  }
  auto links = link_transport_->connect(bootstrap_, partners, {use_, channel_.slot_bytes(), limit});
  if (!links) {
    return fail(std::move(links.error().during("connecting " + self().label() + " to other hosts by " +
                                               link_transport_->name())));
  }
  for (PeerLink& link : *links) link.peer.rank = job_ranks_[link.peer.rank];
  report_links(*links);
  return links;
}

void Connections::add_links(std::vector<PeerLink> links) {
  if (control_) {
    control_->add(links);
    lane_->add(links);
  } else {
    control_ = std::make_shared<ControlLinks>(links, abort_);
    control_->on_wanted(
        [this](std::uint32_t call) { Doorbells(group_.segment, group_.index).pass_on(call); });
    if (is_world_ && job_.events) compare_clocks(links);
    lane_ = std::make_unique<Lane>(self(), links, abort_, *control_, policy_);
  }
  guard_descriptors();
}

void Connections::compare_clocks(const std::vector<PeerLink>& links) {
  control_->answer_times_of(*job_.events);
  // The ranks of a host have one clock. The first one compares it with that of the lowest host that it is linked with,
  // and so on to the first host.
  if (membership_.local_rank() != 0) return;
  const auto lowest = std::min_element(links.begin(), links.end(),
                                       [](const PeerLink& a, const PeerLink& b) { return a.host < b.host; });
  if (lowest == links.end() || lowest->host >= layout().own) return;
  clock_link_ = static_cast<std::size_t>(lowest - links.begin());
  clock_comparison_.emplace(*job_.events, job_ranks_[lowest->peer.rank]);
}

void Connections::guard_descriptors() {
  std::vector<int> fds;
  if (link_transport_) fds = link_transport_->fds();
  const std::vector<int> of_duplicate = parts_->fds();
  fds.insert(fds.end(), of_duplicate.begin(), of_duplicate.end());
  if (control_) {
    const std::vector<int> data = lane_->fds();
    fds.insert(fds.end(), data.begin(), data.end());
    for (std::size_t link = 0; link < control_->size(); ++link) fds.push_back(control_->fd(link));
  }
  closed_in_child_.reset();
  closed_in_child_ = std::make_unique<ClosedInForkedChild>(std::move(fds));
}

Status Connections::connect_hosts(const ConnectLimit& limit) {
  if (!has_lane()) {
    guard_descriptors();
    return {};
  }
  auto links = link_to(plan_.first_hosts, limit);
  if (links) {
    add_links(*std::move(links));
    return {};
  }
  std::vector<PeerLink> established = established_links();
  control_ = std::make_shared<ControlLinks>(established, abort_);
  // The ranks that have joined wait for this one. If the set is not the world, they learn of the failure through its
  // parent.
  if (is_world_) abort_.raise(AbortNotice::of_failed_link(links.error(), self()));
  return fail(std::move(links.error()));
}

std::vector<PeerLink> Connections::established_links() {
  std::vector<PeerLink> links = link_transport_->take_established();
  for (PeerLink& link : links) link.peer.rank = job_ranks_[link.peer.rank];
  return links;
}

Outcome Connections::connect_mesh() {
  if (!lane_ || plan_.further_hosts.empty()) return {};
  const CallDeadline& deadline = channel_.deadline();
  auto links = link_to(plan_.further_hosts, {deadline.deadline, abort_.doorbell()});
  if (links) {
    const std::size_t first = control_->size();
    add_links(*std::move(links));
    plan_.further_hosts.clear();
    auto watched = job_.watcher.add(watches_of_links(first), ticket_);
    if (watched) return {};
    links = fail(std::move(watched.error()));
  }
  // The others are inside the call, and some of them may have been linked: these are notified too.
  std::vector<PeerLink> established = established_links();
  control_->add(established);
  const std::string& why = links.error().message();
  abort_.raise(deadline.deadline.has_passed() ? AbortNotice::of(AbortReason::kTimedOut, self(),
                                                                self().label() + " gave up in " +
                                                                    channel_.call().describe() + ": " + why)
                                              : AbortNotice::of_failed_link(links.error(), self()));
  return fail(abort_.describe(channel_.call(), true));
}

Member Connections::who_is(int rank) const {
  if (layout().host_of(rank) == layout().own) return group_.members[layout().local_rank(rank)];
  Member member = link_transport_->who_is(bootstrap_, rank);
  member.rank = job_ranks_[rank];
  return member;
}

void Connections::report_links(const std::vector<PeerLink>& links) const {
  // One rank of every host reports for all: their connections differ only in the port.
  if (!job_.settings.verbose || group_.index != 0) return;
  const std::string head = "libddl: " + self().label() + ": ";
  std::string text = head + counted(channel_.size(), "rank") + " on this host, " +
                     counted(layout().lane_count(), "lane") + " between " +
                     counted(layout().host_count(), "host") + "\n";
  for (const PeerLink& link : links) {
    text += head + "reaches " + link.peer.label() + " by tcp: " + link.how + "\n";
  }
  std::fputs(text.c_str(), stderr);
}

void Connections::choose_stores() {
  if (channel_.size() == 1) return;
  const std::optional<Stores> given = job_.settings.stores;
  std::optional<std::chrono::nanoseconds> round_trip;
  // Without a CPU for every rank the time would be the scheduler's.
  if (!given && channel_.size() <= group_.cpus) round_trip = longest_round_trip(group_.segment, group_.index);
  const Stores first = given.value_or(stores_at(round_trip));
  first_choice_ = StoreChoice(first, given        ? StoreChoice::Origin::kGiven
                                     : round_trip ? StoreChoice::Origin::kMeasured
                                                  : StoreChoice::Origin::kUnknown);
  channel_.choose_stores(first_choice_);
  if (!job_.settings.verbose || group_.index != 0) return;
  const std::string why = given        ? std::string(contract::env::kStores)
                          : round_trip ? "a cache line takes " + std::to_string(round_trip->count()) +
                                             " ns to another rank and back"
                                       : "the distance of the ranks was not measured";
  const std::string text = "libddl: " + self().label() + ": ranks of this host begin with " +
                           (first == Stores::kPlain ? "plain" : "streaming") + " stores: " + why + "\n";
  std::fputs(text.c_str(), stderr);
}

void Connections::report_stores() const {
  if (!job_.settings.verbose || group_.index != 0 || channel_.size() == 1 || !is_world_) return;
  const std::string text =
      "libddl: " + self().label() + ": at the end: " + channel_.choice().describe() + "\n";
  std::fputs(text.c_str(), stderr);
}

std::vector<Watch> Connections::watches_of_links(std::size_t first) {
  std::vector<Watch> watches;
  for (std::size_t link = first; control_ && link < control_->size(); ++link) {
    watches.push_back({control_->fd(link), [this, link] { return control_->on_readable(link); }});
  }
  return watches;
}

Status Connections::watch() {
  job_.fault.pass(FaultPoint::kBeforeWatching);
  std::vector<Watch> watches;
  // Before all others: of ranks that end because a host was lost, the launcher has ended some.
  if (const auto record = is_world_ && membership_.size > 1 ? job_.record : nullptr;
      record && record->doorbell() >= 0) {
    watches.push_back({record->doorbell(), [this, record] {
                         if (const auto lost = record->lost_host()) abort_.raise(*lost);
                         return false;
                       }});
  }
  for (Watch& link : watches_of_links(0)) watches.push_back(std::move(link));
  // The world watches the processes of this host, and its abort reaches all sets.
  if (!is_world_) group_.pidfds.clear();
  for (std::size_t i = 0; i < group_.pidfds.size(); ++i) {
    if (!group_.pidfds[i]) continue;
    watches.push_back({group_.pidfds[i].get(), [this, index = static_cast<int>(i)] {
                         if (!abort_.has_left(index))
                           abort_.raise(AbortCause{AbortCause::Where::kDied, index});
                         return false;
                       }});
  }
  if (membership_.size > 1) {
    watches.push_back({group_.doorbell.get(), [this] {
                         if (control_) control_->forward_abort();
                         parts_->abort(abort_.notice());
                         on_abort_(abort_.notice());
                         return false;
                       }});
  }
  if (const int due = clock_comparison_ ? job_.events->comparison_due() : -1; due >= 0) {
    watches.push_back({due, [this] {
                         job_.events->take_comparison_due();
                         if (control_) control_->compare_clock(clock_link_, *clock_comparison_);
                         return true;
                       }});
  }
  DDL_ASSIGN(ticket, job_.watcher.add(std::move(watches)));
  ticket_ = ticket;
  return {};
}

std::shared_ptr<ControlLinks> Connections::shared_control() const {
  const std::lock_guard lock(mutex_);
  return control_;
}

void Connections::wait_forwarded(Deadline deadline) {
  if (!abort_.is_raised()) return;
  if (const auto control = shared_control()) control->wait_forwarded(deadline);
  // Not under the lock: the watching thread, which forwards, takes it.
  for (const auto& part : parts_->all()) {
    part->abort().raise(abort_.notice());
    part->wait_forwarded(deadline);
  }
}

Outcome Connections::leave() {
  if (std::exchange(has_left_, true)) return {};
  // Also after an abort, which no other call of this rank may have reported.
  Outcome caught_up = channel_.catch_up(CallDeadline::after(channel_.deadline().seconds));
  job_.watcher.remove(ticket_);
  report_stores();
  channel_.leave();
  parts_->leave();
  return caught_up;
}

void Connections::close() {
  // Before the descriptors are closed: after that their numbers may be reused.
  closed_in_child_.reset();
  // Ranks of other hosts that wait for a first call of this one notice.
  link_transport_.reset();
  parts_->stop_listening();
  std::shared_ptr<ControlLinks> control;
  {
    // Another thread may be in wait_forwarded().
    const std::lock_guard lock(mutex_);
    control.swap(control_);
  }
  if (!control) return;
  control->send_farewell();
  // Partners do not wait for the farewell of a rank whose connecting failed.
  const bool was_connected = lane_ != nullptr;
  lane_.reset();
  if (was_connected && !abort_.is_raised()) control->wait_acknowledged(Deadline::after(kFarewell));
}

// Parts.

tl::expected<Connections*, Failure> Connections::connect_pair(int rank, const Call& call,
                                                              CallDeadline deadline) {
  return parts_->connect_pair(rank, call, deadline);
}

Result<Connections*> Connections::connect_duplicate(const CallDeadline& deadline) {
  return parts_->connect_duplicate(deadline);
}

void Connections::want_to_agree(std::uint32_t call) {
  Doorbells(group_.segment, group_.index).want_to_agree(call);
  if (control_) control_->send_wanted(call);
}

}  // namespace ddl::runtime
