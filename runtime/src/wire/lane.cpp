#include "runtime/src/wire/lane.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>

#include "base/deadline.h"

namespace ddl::runtime {
namespace {

/// A wait for the network spins no longer than this, whatever the policy: a trip on a fast network takes this long,
/// and a wake-up costs about 10 us. If ranks of several hosts or jobs share a CPU without knowing it, each would
/// otherwise keep the one that it waits for from running.
constexpr std::chrono::microseconds kMaxSpin{30};
/// Probes of the sockets before a spinning wait yields its CPU; from then on it yields after each probe.
constexpr int kProbesAlone = 4;

/// How long a rank whose data connection ended waits for the cause on the control connection. A death closes both.
constexpr std::chrono::seconds kPeerReport{10};

/// A rank that waits for another host knows less than one that sees which rank is missing on its own host. So it
/// gives up a little later, and all ranks report the more exact cause.
Deadline later_than(const CallDeadline& deadline) {
  if (deadline.deadline.is_never()) return Deadline::never();
  const auto grace =
      std::min(std::chrono::duration<double>(deadline.seconds / 4), std::chrono::duration<double>(0.25));
  const auto left =
      deadline.deadline.remaining() + std::chrono::duration_cast<Deadline::Clock::duration>(grace);
  return Deadline::after(left);
}

}  // namespace

Lane::Lane(const Member& self, std::vector<PeerLink>& links, const AbortDomain& abort, ControlLinks& control,
           WaitPolicy policy)
    : self_(self), abort_(abort), control_(control), policy_(policy) {
  add(links);
}

void Lane::add(std::vector<PeerLink>& links) {
  for (PeerLink& link : links) partners_.push_back({link.host, SocketBundle(std::move(link.data))});
}

std::vector<int> Lane::fds() const {
  std::vector<int> fds;
  for (const Partner& partner : partners_) partner.sockets.append_fds(fds);
  return fds;
}

Lane::Partner& Lane::partner(int host) {
  const auto found = std::find_if(partners_.begin(), partners_.end(),
                                  [host](const Partner& partner) { return partner.host == host; });
  DDL_CHECK(found != partners_.end(), "host " + std::to_string(host));
  return *found;
}

void Lane::post_send(int host, std::span<const std::byte> bytes, Pending& pending) {
  partner(host).sockets.post_send(bytes, pending);
}

void Lane::post_receive(int host, std::span<std::byte> bytes, Pending& pending) {
  partner(host).sockets.post_receive(bytes, pending);
}

void Lane::post_slice_send(int host, const SliceFrame& frame, std::span<const std::byte> bytes,
                           Pending& pending) {
  partner(host).sockets.post_slice_send(frame, bytes, pending);
}

void Lane::begin_chunk(std::uint64_t call, std::uint64_t chunk, std::size_t longest) {
  for (Partner& partner : partners_) {
    partner.sockets.begin_chunk(call, static_cast<std::uint32_t>(chunk), longest);
  }
}

void Lane::post_slice(int host, const SliceFrame& frame, std::span<std::byte> bytes, Pending& pending) {
  partner(host).sockets.post_slice(frame, bytes, pending);
}

bool Lane::move() {
  bool moved = false;
  for (Partner& partner : partners_) moved = partner.sockets.move() || moved;
  return moved;
}

Lane::Partner* Lane::needed_and_broken() {
  const auto found = std::find_if(partners_.begin(), partners_.end(), [](const Partner& partner) {
    return partner.sockets.broken_why() != nullptr;
  });
  return found == partners_.end() ? nullptr : &*found;
}

const Member& Lane::member_of(const Partner& partner) const {
  return control_.peer(static_cast<std::size_t>(&partner - partners_.data()));
}

Outcome Lane::aborted(const Call& call) const {
  Members awaited;
  for (const Partner& partner : partners_) {
    if (partner.sockets.receives_any()) awaited.push_back(member_of(partner));
  }
  return fail(with_awaited(abort_.describe(call, true), call, awaited));
}

Outcome Lane::partner_ended(Partner& partner, const Call& call) {
  const auto link = static_cast<std::size_t>(&partner - partners_.data());
  const PeerState state = control_.wait_ended(link, Deadline::after(kPeerReport));
  if (!abort_.is_raised()) {
    const Member& member = member_of(partner);
    abort_.raise(state == PeerState::kLeft
                     ? AbortNotice::of(AbortReason::kLeft, member)
                     : AbortNotice::of(AbortReason::kLost, member, *partner.sockets.broken_why()));
  }
  return aborted(call);
}

Outcome Lane::out_of_step(int host, const Call& call) {
  abort_.raise(AbortNotice::of(AbortReason::kBroken, member_of(partner(host)), "data of another call"));
  return aborted(call);
}

Outcome Lane::timed_out(const Call& call, double seconds) {
  const auto is_awaited = [](const Partner& partner) { return partner.sockets.receives_any(); };
  auto awaited = std::find_if(partners_.begin(), partners_.end(), is_awaited);
  if (awaited == partners_.end()) {
    awaited = std::find_if(partners_.begin(), partners_.end(),
                           [](const Partner& partner) { return partner.sockets.sends_any(); });
  }
  DDL_CHECK(awaited != partners_.end(), call.describe());
  abort_.raise_timeout(seconds, call, member_of(*awaited));
  return aborted(call);
}

Outcome Lane::interrupted(const Call& call) {
  abort_.raise(AbortNotice::of(AbortReason::kInterrupted, self_));
  return aborted(call);
}

Lane::Wait::Wait(Lane& lane, const Call& call, const CallDeadline& deadline)
    : lane_(lane),
      call_(call),
      deadline_(deadline),
      give_up_(later_than(deadline)),
      spin_(std::min<std::chrono::nanoseconds>(lane.policy_.spin, kMaxSpin)) {}

Outcome Lane::Wait::once() {
  if (lane_.abort_.is_raised()) return lane_.aborted(call_);
  if (Partner* ended = lane_.needed_and_broken()) return lane_.partner_ended(*ended, call_);
  for (const Partner& partner : lane_.partners_) {
    if (partner.sockets.is_out_of_step()) return lane_.out_of_step(partner.host, call_);
  }
  if (spins_anew_) {
    spins_anew_ = false;
    spin_until_ = Deadline::after(spin_);
    probes_ = 0;
  }
  if (!spin_until_.has_passed()) {
    if (++probes_ > kProbesAlone) ::sched_yield();
    return {};
  }
  return sleep();
}

Outcome Lane::Wait::sleep() {
  std::vector<pollfd> entries{{lane_.abort_.doorbell(), POLLIN, 0}};
  for (const Partner& partner : lane_.partners_) partner.sockets.append_entries(entries);
  lane_.abort_.set_waits_for_other_host(true);
  const std::int64_t began = kernel_now();
  const int ready = ::poll(entries.data(), entries.size(), interruption_.limit(give_up_).poll_milliseconds());
  const int error = ready < 0 ? errno : 0;
  lane_.slept_ += kernel_now() - began;
  lane_.abort_.set_waits_for_other_host(false);
  if (error != 0 && error != EINTR) return fail(DDL_ERROR_SYSTEM, errno_error("poll", error).message());
  if (ready <= 0 && interruption_.is_wanted(error == EINTR)) return lane_.interrupted(call_);
  if (ready == 0 && give_up_.has_passed()) return lane_.timed_out(call_, deadline_.seconds);
  return {};
}

}  // namespace ddl::runtime
