#include "runtime/src/context/context.h"

#include <unistd.h>

#include <cstdio>

#include "base/text.h"
#include "contract/launcher_event.h"
#include "runtime/src/collective/host_steps.h"

namespace ddl::runtime {
namespace {

/// How long a call that fails waits until its partners on other hosts have been told.
constexpr std::chrono::seconds kForwarding{1};
/// How long a rank that leaves waits until its partners have heard it: they may be without a CPU for long, and what is
/// closed before that looks like a death.
constexpr std::chrono::seconds kFarewell{10};

bool has_lane(const Membership& membership) {
  return membership.layout.host_count() > 1 && membership.local_rank() < membership.layout.lanes();
}

SegmentWish wish_of(const Settings& settings, const Membership& membership, std::uint32_t first_sequence) {
  SegmentWish wish;
  wish.first_sequence = first_sequence;
  wish.slot_bytes = settings.staging_bytes.value_or(Settings::kHostStagingBytes);
  if (membership.layout.host_count() > 1) {
    wish.slot_bytes =
        SlotAreas::of(settings.staging_bytes.value_or(Settings::kClusterStagingBytes), membership.size)
            .slot_bytes();
  }
  return wish;
}

/// Puts what the others need, then waits for everybody: one fence for all transports.
Status meet(Bootstrap& bootstrap, Transports transports, const SegmentWish& wish) {
  Status offered = transports.within_host.offer(bootstrap, wish);
  if (offered && has_lane(bootstrap.membership())) offered = transports.between_hosts.offer(bootstrap);
  DDL_TRY(bootstrap.fence(Deadline::never()));
  return offered;
}

}  // namespace

Result<std::unique_ptr<Context>> Context::join(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap,
                                               Transports transports, FaultInjector fault,
                                               std::uint32_t first_sequence) {
  DDL_TRY(transports.within_host.is_usable(bootstrap->membership()));
  DDL_TRY(meet(*bootstrap, transports, wish_of(settings, bootstrap->membership(), first_sequence)));
  auto group = transports.within_host.connect(*bootstrap);
  if (!group) return fail(std::move(group.error()));
  auto segment = Segment::open({group->memory->data(), group->memory->size()});
  if (!segment) return fail(std::move(segment.error()));

  std::unique_ptr<Context> context(
      new Context(settings, std::move(bootstrap), *std::move(group), *segment, std::move(fault)));
  const WaitPolicy policy = WaitPolicy::for_group(segment->members(), context->group_.cpus, settings.spin);
  if (context->bootstrap_->membership().layout.host_count() > 1) {
    DDL_TRY(context->connect_hosts(transports.between_hosts, *segment, policy));
  }
  DDL_TRY(context->start_watching());
  return context;
}

Context::Context(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap, SharedGroup group,
                 Segment segment, FaultInjector fault)
    : settings_(settings),
      bootstrap_(std::move(bootstrap)),
      tells_first_(settings.report_start && bootstrap_->membership().rank == 0),
      group_(std::move(group)),
      fault_(std::move(fault)),
      abort_(segment, group_.members, group_.doorbell.get()),
      channel_(segment, group_.members, abort_, group_.index,
               WaitPolicy::for_group(segment.members(), group_.cpus, settings.spin), fault_),
      fork_count_(fork_count()) {}

Status Context::connect_hosts(LinkTransport& transport, Segment segment, WaitPolicy policy) {
  const Membership& membership = bootstrap_->membership();
  const HostLayout& layout = membership.layout;
  std::unique_ptr<Lane> lane;
  if (has_lane(membership)) {
    auto links =
        transport.connect(*bootstrap_, partner_hosts(layout.host_count(), layout.own), segment.slot_bytes());
    if (!links) {
      return fail(std::move(links.error().during(
          "connecting " + group_.members[static_cast<std::size_t>(group_.index)].place() +
          " to other hosts by " + transport.name())));
    }
    tell_links(*links);
    control_ = std::make_unique<ControlLinks>(*links, abort_, group_.index);
    lane = std::make_unique<Lane>(*links, abort_, *control_, group_.index, policy);
    std::vector<int> fds = lane->fds();
    for (std::size_t link = 0; link < control_->size(); ++link) fds.push_back(control_->fd(link));
    closed_in_child_ = std::make_unique<ClosedInForkedChild>(std::move(fds));
  }
  cluster_ = std::make_unique<Cluster>(layout, SlotAreas::in_slot(segment.slot_bytes()), channel_,
                                       std::move(lane), fault_);
  return {};
}

Status Context::start_watching() {
  std::vector<Watch> watches;
  for (std::size_t i = 0; i < group_.pidfds.size(); ++i) {
    if (!group_.pidfds[i]) continue;
    watches.push_back({group_.pidfds[i].get(), [this, index = static_cast<int>(i)] {
                         if (!abort_.has_left(index)) abort_.raise({AbortCause::Where::kDied, index});
                         return false;
                       }});
  }
  if (control_) {
    watches.push_back({group_.doorbell.get(), [this] {
                         control_->forward_abort();
                         return false;
                       }});
    for (std::size_t link = 0; link < control_->size(); ++link) {
      watches.push_back({control_->fd(link), [this, link] { return control_->on_readable(link); }});
    }
  }
  return watcher_.start(std::move(watches));
}

void Context::tell_links(const std::vector<PeerLink>& links) const {
  // One rank of every host speaks for all: their connections differ in the port only.
  if (!settings_.verbose || group_.index != 0) return;
  const Member& self = group_.members.front();
  const HostLayout& layout = bootstrap_->membership().layout;
  std::string text = "libddl: " + self.place() + ": " + counted(local_size(), "rank") +
                     " of this host share memory, " + counted(layout.lanes(), "rank") + " of each of " +
                     counted(layout.host_count(), "host") + " speak to other hosts\n";
  for (const PeerLink& link : links) {
    text += "libddl: " + self.place() + ": reaches " + link.peer.place() + " by tcp: " + link.how + "\n";
  }
  std::fputs(text.c_str(), stderr);
}

Context::~Context() {
  if (!left_) (void)leave();
}

bool Context::is_in_forked_child() const { return fork_count() != fork_count_; }

Outcome Context::check_usable(const CallLock& lock) const {
  if (is_in_forked_child()) {
    return failed(DDL_ERROR_ABORTED, "this context belongs to the parent of process " +
                                         std::to_string(::getpid()) +
                                         "; a child that was forked without exec cannot use it");
  }
  if (!lock.held()) return failed(DDL_ERROR_BUSY, "another thread is inside a call of this context");
  if (ended_by_) return failed(DDL_ERROR_ABORTED, "the context was aborted earlier: " + *ended_by_);
  return {};
}

Outcome Context::note(Outcome outcome) {
  if (outcome && tells_first_) {
    tells_first_ = false;
    bootstrap_->tell_launcher(contract::kFirstCollectiveEvent);
  }
  if (outcome || outcome.error().status == DDL_ERROR_MISMATCH) return outcome;
  // The program may end now. Before that, its partners must have heard the true cause.
  if (control_ && abort_.is_raised()) control_->wait_forwarded(Deadline::after(kForwarding));
  ended_by_ = outcome.error().message;
  return outcome;
}

Outcome Context::leave() {
  const CallLock lock(busy_);
  if (!lock.held()) return failed(DDL_ERROR_BUSY, "another thread is inside a call of this context");
  left_ = true;
  watcher_.stop();
  abort_.leave(group_.index);
  // Before the connections are closed: their numbers may be others' then.
  closed_in_child_.reset();
  if (control_) {
    control_->say_farewell();
    cluster_->hang_up();
    if (!abort_.is_raised()) control_->wait_heard(Deadline::after(kFarewell));
  }
  cluster_.reset();
  control_.reset();
  if (auto left = bootstrap_->leave(); !left) return tl::unexpected(to_failure(left.error()));
  return {};
}

}  // namespace ddl::runtime
