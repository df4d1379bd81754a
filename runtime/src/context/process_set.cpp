#include "runtime/src/context/process_set.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/text.h"
#include "contract/environment.h"
#include "runtime/src/backend/collective_backend.h"
#include "runtime/src/backend/host_backend.h"
#include "runtime/src/backend/mpi_backend.h"
#include "runtime/src/bootstrap/module_loader.h"
#include "runtime/src/collective/canonical_tree.h"
#include "runtime/src/context/set_memory.h"

namespace ddl::runtime {
namespace {

/// How long a rank that leaves waits until its partners have heard it: they may be without a CPU for long, and what is
/// closed before that looks like a death.
constexpr std::chrono::seconds kFarewell{10};

bool has_lane(const Membership& membership) {
  return membership.layout.host_count() > 1 && membership.local_rank() < membership.layout.lanes();
}

/// The hosts that a lane is connected with from the start.
std::vector<int> first_hosts(const HostLayout& layout) {
  if (layout.host_count() > kMeshHosts) return partner_hosts(layout.host_count(), layout.own);
  std::vector<int> hosts;
  for (int host = 0; host < layout.host_count(); ++host) {
    if (host != layout.own) hosts.push_back(host);
  }
  return hosts;
}

/// The others.
std::vector<int> further_hosts(const HostLayout& layout) {
  const std::vector<int> first = first_hosts(layout);
  std::vector<int> hosts;
  for (int host = 0; host < layout.host_count(); ++host) {
    if (host != layout.own && !std::binary_search(first.begin(), first.end(), host)) hosts.push_back(host);
  }
  return hosts;
}

/// Puts what the others need, then waits for everybody: one fence for all of it.
Status meet(const SetSurroundings& around, Bootstrap& bootstrap, Transport& within_host,
            LinkTransport* between_hosts, const SegmentWish& wish) {
  Status offered = within_host.offer(bootstrap, wish);
  // Sets of the job's ranks have the job's way.
  if (offered && around.watches_deaths) offered = put_operations(bootstrap, around.settings);
  if (offered && between_hosts != nullptr) offered = between_hosts->offer(bootstrap);
  around.fault.pass(FaultPoint::kBeforeFence);
  auto met = bootstrap.fence(around.settings.start_deadline());
  if (!met && met.error().code() == ErrorCode::kTimeout && around.watches_deaths) {
    std::array<char, 32> seconds{};
    std::snprintf(seconds.data(), seconds.size(), "%g", around.settings.start_timeout_seconds);
    return fail(std::move(met.error().during(std::string("not all ranks have come within ") + seconds.data() +
                                             " s (" + contract::env::kStartTimeoutSeconds +
                                             "): one may have failed before it could join")));
  }
  DDL_TRY(met);
  return offered;
}

}  // namespace

Result<std::unique_ptr<ProcessSet>> ProcessSet::join(SetSurroundings around,
                                                     std::unique_ptr<Bootstrap> bootstrap,
                                                     std::vector<int> job_ranks, FaultInjector fault,
                                                     OnAbort on_abort, const ConnectLimit& limit,
                                                     std::uint32_t first_sequence) {
  const Membership& membership = bootstrap->membership();
  const auto within_host = around.transports.within_host(membership, around.fault);
  std::unique_ptr<LinkTransport> between_hosts;
  if (membership.layout.host_count() > 1) {
    between_hosts = around.transports.between_hosts(membership, around.fault);
  }
  DDL_TRY(within_host->is_usable(membership));
  DDL_TRY(meet(around, *bootstrap, *within_host, between_hosts.get(),
               wish_of(around.settings, membership, around.heap == nullptr, first_sequence)));
  auto group = within_host->connect(*bootstrap, limit);
  if (!group) return fail(std::move(group.error()));
  // Sentences name ranks of the job.
  for (Member& member : group->members) member.rank = job_ranks[static_cast<std::size_t>(member.rank)];

  std::unique_ptr<ProcessSet> set(new ProcessSet(around, std::move(bootstrap), std::move(job_ranks),
                                                 *std::move(group), std::move(fault), std::move(on_abort)));
  const WaitPolicy policy =
      WaitPolicy::for_group(set->channel_.size(), set->group_.cpus, around.settings.spin);
  if (set->membership().layout.host_count() > 1) {
    DDL_TRY(set->connect_hosts(std::move(between_hosts), policy, limit));
  }
  set->make_pairs();
  DDL_TRY(set->make_backend());
  around.fault.pass(FaultPoint::kBeforeWatching);
  DDL_TRY(set->start_watching());
  return set;
}

ProcessSet::ProcessSet(SetSurroundings around, std::unique_ptr<Bootstrap> bootstrap,
                       std::vector<int> job_ranks, SharedGroup group, FaultInjector fault, OnAbort on_abort)
    : around_(around),
      bootstrap_(std::move(bootstrap)),
      job_ranks_(std::move(job_ranks)),
      group_(std::move(group)),
      fault_(std::move(fault)),
      on_abort_(std::move(on_abort)),
      abort_(group_.segment, group_.members, group_.index, group_.doorbell.get()),
      heap_(group_.segment.heap(), group_.segment.heap_part(group_.index)),
      channel_(group_.segment, group_.members, abort_, group_.index,
               WaitPolicy::for_group(group_.segment.members(), group_.cpus, around.settings.spin),
               around.heap == nullptr ? heap_ : *around.heap, fault_),
      slot_bytes_(group_.segment.slot_bytes()),
      fork_count_(fork_count()) {}

Result<std::vector<PeerLink>> ProcessSet::connect_to(const std::vector<int>& hosts,
                                                     const ConnectLimit& limit) {
  const HostLayout& layout = membership().layout;
  const auto lane = static_cast<std::size_t>(membership().local_rank());
  std::vector<LinkPartner> partners;
  for (const int host : hosts) {
    partners.push_back({host, layout.hosts[static_cast<std::size_t>(host)][lane], host < layout.own});
  }
  auto links = link_transport_->connect(*bootstrap_, partners, {LinkUse::kLane, slot_bytes_, limit});
  if (!links) {
    return fail(std::move(
        links.error().during("connecting " + group_.members[static_cast<std::size_t>(group_.index)].place() +
                             " to other hosts by " + link_transport_->name())));
  }
  for (PeerLink& link : *links) link.peer.rank = job_ranks_[static_cast<std::size_t>(link.peer.rank)];
  tell_links(*links);
  return links;
}

void ProcessSet::guard_descriptors() {
  std::vector<int> fds = link_transport_->fds();
  if (control_) {
    const std::vector<int> data = cluster_->fds();
    fds.insert(fds.end(), data.begin(), data.end());
    for (std::size_t link = 0; link < control_->size(); ++link) fds.push_back(control_->fd(link));
  }
  closed_in_child_.reset();
  closed_in_child_ = std::make_unique<ClosedInForkedChild>(std::move(fds));
}

Status ProcessSet::connect_hosts(std::unique_ptr<LinkTransport> transport, WaitPolicy policy,
                                 const ConnectLimit& limit) {
  const HostLayout& layout = membership().layout;
  link_transport_ = std::move(transport);
  std::unique_ptr<Lane> lane;
  if (has_lane(membership())) {
    auto links = connect_to(first_hosts(layout), limit);
    if (!links) return fail(give_up_connecting(std::move(links.error())));
    control_ = std::make_unique<ControlLinks>(*links, abort_);
    lane = std::make_unique<Lane>(*links, abort_, *control_, policy);
  }
  cluster_ = std::make_unique<Cluster>(layout, SlotAreas::in_slot(slot_bytes_), channel_, std::move(lane),
                                       layout.host_count() <= kMeshHosts,
                                       [this](Lane& own) { return connect_mesh(own); });
  guard_descriptors();
  return {};
}

Error ProcessSet::give_up_connecting(Error why) {
  std::vector<PeerLink> standing = standing_links();
  control_ = std::make_unique<ControlLinks>(standing, abort_);
  // Those that have joined wait for this rank. Of another set than the world, they hear of it from the set it comes from.
  if (around_.watches_deaths) {
    const Member& self = group_.members[static_cast<std::size_t>(group_.index)];
    abort_.raise(AbortNotice::of(AbortReason::kLost, self, why.message()));
  }
  return why;
}

std::vector<PeerLink> ProcessSet::standing_links() {
  std::vector<PeerLink> links = link_transport_->take_standing();
  for (PeerLink& link : links) link.peer.rank = job_ranks_[static_cast<std::size_t>(link.peer.rank)];
  return links;
}

Outcome ProcessSet::connect_mesh(Lane& lane) {
  const CallDeadline& deadline = channel_.deadline();
  auto links = connect_to(further_hosts(membership().layout), limit_of(deadline));
  if (links) {
    const std::size_t first = control_->size();
    control_->add(*links);
    lane.add(*links);
    guard_descriptors();
    auto watched = around_.watcher.add(watches_of_links(first), ticket_);
    if (watched) return {};
    links = fail(std::move(watched.error()));
  }
  // The others are in the midst of the call, and some of them may have come through: they are told, too.
  std::vector<PeerLink> standing = standing_links();
  control_->add(standing);
  const Member& self = group_.members[static_cast<std::size_t>(group_.index)];
  const std::string& why = links.error().message();
  abort_.raise(deadline.deadline.has_passed()
                   ? AbortNotice::of(AbortReason::kTimedOut, self,
                                     self.place() + " gave up in " + channel_.call().describe() + ": " + why)
                   : AbortNotice::of(AbortReason::kLost, self, why));
  return tl::unexpected(abort_.describe(channel_.call(), true));
}

std::vector<Watch> ProcessSet::watches_of_links(std::size_t first) {
  std::vector<Watch> watches;
  for (std::size_t link = first; control_ && link < control_->size(); ++link) {
    watches.push_back({control_->fd(link), [this, link] { return control_->on_readable(link); }});
  }
  return watches;
}

void ProcessSet::make_pairs() {
  const SharedHeap& heap = around_.heap == nullptr ? heap_ : *around_.heap;
  pairs_ = std::make_unique<Pairs>(PairsParent{around_, *bootstrap_, job_ranks_, group_, abort_, heap, fault_,
                                               link_transport_.get(),
                                               [this](const AbortNotice& notice) { tell(notice); }});
}

Status ProcessSet::make_backend() {
  if (around_.settings.cpu_operations == contract::CpuOperations::kDdl) {
    backend_ = std::make_unique<HostBackend>(
        channel_, cluster_.get(),
        [this](const Request& request, CallDeadline deadline) { return pairs_->transfer(request, deadline); },
        around_.settings.algorithms);
    return {};
  }
  if (!around_.mpi) {
    DDL_TRY(check_same_operations(*bootstrap_, around_.settings));
    auto world = join_mpi(around_.settings, MpiRankPlace{rank(), size()});
    if (!world) return fail(std::move(world.error().during("collectives by MPI")));
    around_.mpi = *std::move(world);
    if (!around_.settings.finalizes_mpi) around_.mpi->abandon();
  }
  auto communicator = around_.mpi->communicator(job_ranks_, membership().generation);
  if (!communicator) return fail(std::move(communicator.error().during("collectives by MPI")));
  const auto who_is = [this](int rank) {
    const HostLayout& layout = membership().layout;
    if (layout.host_of(rank) == layout.own)
      return group_.members[static_cast<std::size_t>(layout.local_rank(rank))];
    Member member = link_transport_->who_is(*bootstrap_, rank);
    member.rank = job_ranks_[static_cast<std::size_t>(rank)];
    return member;
  };
  const auto who_left = [this] { return control_ ? control_->first_left() : std::nullopt; };
  backend_ = std::make_unique<MpiBackend>(
      MpiPlace{channel_, abort_, membership().layout, job_ranks_, rank(),
               WaitPolicy::for_group(channel_.size(), group_.cpus, around_.settings.spin),
               MpiLimits::of(around_.settings.staging_bytes), who_is, who_left, around_.mpi},
      *std::move(communicator));
  return {};
}

Status ProcessSet::start_watching() {
  std::vector<Watch> watches = watches_of_links(0);
  if (!around_.watches_deaths) group_.pidfds.clear();
  for (std::size_t i = 0; i < group_.pidfds.size(); ++i) {
    if (!group_.pidfds[i]) continue;
    watches.push_back({group_.pidfds[i].get(), [this, index = static_cast<int>(i)] {
                         if (!abort_.has_left(index))
                           abort_.raise(AbortCause{AbortCause::Where::kDied, index});
                         return false;
                       }});
  }
  if (size() > 1) {
    watches.push_back({group_.doorbell.get(), [this] {
                         if (control_) control_->forward_abort();
                         pairs_->tell(notice());
                         on_abort_(notice());
                         return false;
                       }});
  }
  auto ticket = around_.watcher.add(std::move(watches));
  if (!ticket) return fail(std::move(ticket.error()));
  ticket_ = *ticket;
  return {};
}

void ProcessSet::tell_links(const std::vector<PeerLink>& links) const {
  // One rank of every host speaks for all: their connections differ in the port only.
  if (!around_.settings.verbose || group_.index != 0) return;
  const Member& self = group_.members.front();
  const HostLayout& layout = membership().layout;
  std::string text = "libddl: " + self.place() + ": " + counted(channel_.size(), "rank") + " on this host, " +
                     counted(layout.lanes(), "lane") + " between " + counted(layout.host_count(), "host") +
                     "\n";
  for (const PeerLink& link : links) {
    text += "libddl: " + self.place() + ": reaches " + link.peer.place() + " by tcp: " + link.how + "\n";
  }
  std::fputs(text.c_str(), stderr);
}

ProcessSet::~ProcessSet() {
  if (!left_) (void)leave();
}

Outcome ProcessSet::check_usable(const CallLock& lock) const {
  if (is_in_forked_child()) {
    return failed(DDL_ERROR_ABORTED, "this context belongs to the parent of process " +
                                         std::to_string(::getpid()) +
                                         "; a child that was forked without exec cannot use it");
  }
  if (!lock.held()) return failed(DDL_ERROR_BUSY, "another thread is inside a call of this process set");
  if (left_) return failed(DDL_ERROR_INVALID_ARGUMENT, "this process set has been freed");
  if (ended_by_) return failed(DDL_ERROR_ABORTED, "the context was aborted earlier: " + *ended_by_);
  return {};
}

Outcome ProcessSet::note(Outcome outcome) {
  // What the ranks have found out together, or one about its own arguments, ends nothing.
  if (outcome || outcome.error().status == DDL_ERROR_MISMATCH ||
      outcome.error().status == DDL_ERROR_INVALID_ARGUMENT ||
      outcome.error().status == DDL_ERROR_UNSUPPORTED || outcome.error().status == DDL_ERROR_BOOTSTRAP) {
    return outcome;
  }
  if (abort_.is_raised()) on_abort_(notice());
  ended_by_ = outcome.error().message;
  return outcome;
}

void ProcessSet::wait_forwarded(Deadline deadline) {
  if (!abort_.is_raised()) return;
  if (control_) control_->wait_forwarded(deadline);
  pairs_->wait_forwarded(notice(), deadline);
}

Outcome ProcessSet::leave() {
  const CallLock lock(busy_);
  if (!lock.held()) return failed(DDL_ERROR_BUSY, "another thread is inside a call of this process set");
  if (left_) return {};
  left_ = true;
  around_.watcher.remove(ticket_);
  channel_.leave();
  if (pairs_) pairs_->leave();
  backend_.reset();
  // Before the connections are closed: their numbers may be others' then.
  closed_in_child_.reset();
  // Ranks of other hosts that wait for a first call of this one notice.
  link_transport_.reset();
  if (control_) {
    control_->say_farewell();
    if (cluster_) cluster_->hang_up();
    // Who has not been connected with all of them is not counted on by anybody.
    if (cluster_ && !abort_.is_raised()) control_->wait_heard(Deadline::after(kFarewell));
  }
  cluster_.reset();
  control_.reset();
  if (auto left = bootstrap_->leave(); !left) return tl::unexpected(to_failure(left.error()));
  return {};
}

}  // namespace ddl::runtime
