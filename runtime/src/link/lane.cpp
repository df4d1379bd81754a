#include "runtime/src/link/lane.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace ddl::runtime {
namespace {

/// Pieces that go into one system call: a header and its payload, several times.
constexpr std::size_t kMaxPieces = 8;

/// A wait for the network spins no longer than this, whatever the policy: a trip on a fast network takes so long, and being
/// woken costs about 10 us. Where ranks of several hosts or jobs share a CPU, unknown to each other, each would otherwise
/// keep the one that it waits for from running.
constexpr std::chrono::microseconds kLongestSpin{30};

/// How long a rank whose data connection ended waits to hear over control what happened. A death closes both.
constexpr std::chrono::seconds kVerdict{10};

/// A rank that waits for another host knows less than one that sees who is missing on its own host. So it gives up a
/// little later, and everybody gets the better answer.
Deadline later_than(const CallDeadline& deadline) {
  if (deadline.deadline.is_never()) return Deadline::never();
  const auto grace =
      std::min(std::chrono::duration<double>(deadline.seconds / 4), std::chrono::duration<double>(0.25));
  const auto left =
      deadline.deadline.remaining() + std::chrono::duration_cast<Deadline::Clock::duration>(grace);
  return Deadline::after(left);
}

/// Removes what has been handled from the front; bytes is what the system call did.
template <class Queue>
void take_handled(Queue& queue, std::size_t bytes) {
  while (!queue.empty()) {
    auto& front = queue.front();
    const std::size_t part = std::min(bytes, front.size);
    front.data += part;
    front.size -= part;
    bytes -= part;
    if (front.size > 0) return;
    --*front.pending;
    queue.pop_front();
  }
}

/// The front of a queue as one system call takes it.
template <class Queue>
std::pair<std::array<iovec, kMaxPieces>, std::size_t> pieces_of(const Queue& queue) {
  std::array<iovec, kMaxPieces> pieces;
  const std::size_t count = std::min(queue.size(), kMaxPieces);
  for (std::size_t i = 0; i < count; ++i) {
    pieces[i] = {const_cast<std::byte*>(queue[i].data),
                 queue[i].size};  // NOLINT: iovec serves both directions
  }
  return {pieces, count};
}

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Lane::Lane(std::vector<PeerLink>& links, const GroupAbort& abort, ControlLinks& control, int own_index,
           WaitPolicy policy)
    : abort_(abort), control_(control), own_index_(own_index), policy_(policy) {
  add(links);
}

void Lane::add(std::vector<PeerLink>& links) {
  for (PeerLink& link : links) {
    Partner& own = partners_.emplace_back();
    own.host = link.host;
    own.socket = std::move(link.data);
  }
}

std::vector<int> Lane::fds() const {
  std::vector<int> fds;
  for (const Partner& partner : partners_) fds.push_back(partner.socket.get());
  return fds;
}

Lane::Partner& Lane::partner(int host) {
  const auto found = std::find_if(partners_.begin(), partners_.end(),
                                  [host](const Partner& partner) { return partner.host == host; });
  DDL_CHECK(found != partners_.end(), "host " + std::to_string(host));
  return *found;
}

void Lane::post_send(int host, std::span<const std::byte> bytes, Pending& pending) {
  if (bytes.empty()) return;
  ++pending;
  partner(host).sends.push_back({bytes.data(), bytes.size(), &pending});
}

void Lane::post_receive(int host, std::span<std::byte> bytes, Pending& pending) {
  if (bytes.empty()) return;
  ++pending;
  partner(host).receives.push_back({bytes.data(), bytes.size(), &pending});
}

void Lane::post_slice(int host, const SliceFrame& frame, std::span<std::byte> bytes, Pending& pending) {
  ++pending;
  Partner& from = partner(host);
  from.slices.push_back({frame, {bytes.data(), bytes.size(), &pending}});
  if (from.head_bytes == sizeof from.head && !from.is_out_of_step) match_frame(from);
}

bool Lane::move() {
  bool moved = false;
  for (Partner& partner : partners_) {
    // What has arrived can be taken also when the other direction is broken.
    if (partner.wants_bytes()) moved = move_receives(partner) || moved;
    if (!partner.sends.empty() && !partner.is_broken) moved = move_sends(partner) || moved;
  }
  return moved;
}

bool Lane::move_sends(Partner& partner) {
  bool moved = false;
  while (!partner.sends.empty()) {
    auto [pieces, count] = pieces_of(partner.sends);
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t sent =
        retry_eintr([&] { return ::sendmsg(partner.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT); });
    if (sent < 0) {
      if (would_block(errno)) return moved;
      partner.is_broken = true;
      partner.broken_why = std::strerror(errno);
      return moved;
    }
    take_handled(partner.sends, static_cast<std::size_t>(sent));
    moved = true;
  }
  return moved;
}

bool Lane::note_received(Partner& partner, ssize_t got) {
  if (got > 0) return true;
  if (got < 0 && would_block(errno)) return false;
  partner.is_broken = true;
  partner.broken_why = got == 0 ? "the connection was closed" : std::strerror(errno);
  return false;
}

bool Lane::move_receives(Partner& partner) {
  bool moved = false;
  for (;;) {
    if (partner.receives.empty()) {
      if (!partner.wants_frame() || !move_frame(partner)) return moved;
      moved = true;
      continue;
    }
    auto [pieces, count] = pieces_of(partner.receives);
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t got = retry_eintr([&] { return ::recvmsg(partner.socket.get(), &message, MSG_DONTWAIT); });
    if (!note_received(partner, got)) return moved;
    take_handled(partner.receives, static_cast<std::size_t>(got));
    moved = true;
  }
}

bool Lane::move_frame(Partner& partner) {
  if (partner.is_out_of_step) return false;
  const auto rest = std::as_writable_bytes(std::span(&partner.head, 1)).subspan(partner.head_bytes);
  const ssize_t got =
      retry_eintr([&] { return ::recv(partner.socket.get(), rest.data(), rest.size(), MSG_DONTWAIT); });
  if (!note_received(partner, got)) return false;
  partner.head_bytes += static_cast<std::size_t>(got);
  if (partner.head_bytes == sizeof partner.head) match_frame(partner);
  return true;
}

void Lane::match_frame(Partner& partner) {
  const SliceFrame& head = partner.head;
  const auto is_it = [&head](const Awaited& slice) {
    return slice.frame.chunk == head.chunk && slice.frame.turn == head.turn;
  };
  const auto found = std::find_if(partner.slices.begin(), partner.slices.end(), is_it);
  const bool fits = head.magic == SliceFrame::kMagic && !partner.slices.empty() &&
                    head.call == partner.slices.front().frame.call;
  if (!fits || (found != partner.slices.end() && found->frame != head)) {
    partner.is_out_of_step = true;
    return;
  }
  // A slice of a chunk that this rank has not come to waits in the socket.
  if (found == partner.slices.end()) return;
  partner.receives.push_back(found->to);
  partner.slices.erase(found);
  partner.head_bytes = 0;
}

Lane::Partner* Lane::needed_and_broken() {
  const auto found = std::find_if(partners_.begin(), partners_.end(), [](const Partner& partner) {
    return partner.is_broken && (!partner.sends.empty() || partner.receives_any());
  });
  return found == partners_.end() ? nullptr : &*found;
}

const Member& Lane::member_of(const Partner& partner) const {
  return control_.peer(static_cast<std::size_t>(&partner - partners_.data()));
}

Outcome Lane::aborted(const Call& call) const {
  return tl::unexpected(abort_.describe(*abort_.cause(), call, true));
}

Outcome Lane::partner_ended(Partner& partner, const Call& call) {
  const auto link = static_cast<std::size_t>(&partner - partners_.data());
  const PeerState state = control_.wait_verdict(link, Deadline::after(kVerdict));
  if (!abort_.is_raised()) {
    const Member& member = member_of(partner);
    abort_.raise_told(own_index_, state == PeerState::kLeft
                                      ? AbortNotice::of(AbortReason::kLeft, member)
                                      : AbortNotice::of(AbortReason::kLost, member, partner.broken_why));
  }
  return wait_raised(call);
}

Outcome Lane::wait_raised(const Call& call) const {
  // If the watching thread was about to say something else, it rings now.
  pollfd doorbell{abort_.doorbell(), POLLIN, 0};
  while (!abort_.is_raised()) (void)::poll(&doorbell, 1, -1);
  return aborted(call);
}

Outcome Lane::out_of_step(int host, const Call& call) {
  abort_.raise_told(own_index_,
                    AbortNotice::of(AbortReason::kBroken, member_of(partner(host)), "data of another call"));
  return wait_raised(call);
}

Outcome Lane::timed_out(const Call& call, double seconds) {
  const auto is_awaited = [](const Partner& partner) { return partner.receives_any(); };
  auto awaited = std::find_if(partners_.begin(), partners_.end(), is_awaited);
  if (awaited == partners_.end()) {
    awaited = std::find_if(partners_.begin(), partners_.end(),
                           [](const Partner& partner) { return !partner.sends.empty(); });
  }
  DDL_CHECK(awaited != partners_.end(), call.describe());
  abort_.raise_timeout(own_index_, seconds, call, member_of(*awaited));
  return aborted(call);
}

Lane::Wait::Wait(Lane& lane, const Call& call, const CallDeadline& deadline)
    : lane_(lane),
      call_(call),
      deadline_(deadline),
      give_up_(later_than(deadline)),
      spin_until_(Deadline::after(std::min<std::chrono::nanoseconds>(lane.policy_.spin, kLongestSpin))) {}

Outcome Lane::Wait::once() {
  if (lane_.abort_.is_raised()) return lane_.aborted(call_);
  if (Partner* ended = lane_.needed_and_broken()) return lane_.partner_ended(*ended, call_);
  for (const Partner& partner : lane_.partners_) {
    if (partner.is_out_of_step) return lane_.out_of_step(partner.host, call_);
  }
  if (!spin_until_.has_passed()) return {};
  return sleep();
}

Outcome Lane::Wait::sleep() {
  std::vector<pollfd> entries{{lane_.abort_.doorbell(), POLLIN, 0}};
  for (const Partner& partner : lane_.partners_) {
    const int events = (partner.wants_bytes() ? POLLIN : 0) | (partner.sends.empty() ? 0 : POLLOUT);
    if (events != 0) entries.push_back({partner.socket.get(), static_cast<short>(events), 0});
  }
  lane_.abort_.set_waits_abroad(lane_.own_index_, true);
  const int ready =
      retry_eintr([&] { return ::poll(entries.data(), entries.size(), give_up_.poll_milliseconds()); });
  lane_.abort_.set_waits_abroad(lane_.own_index_, false);
  if (ready < 0) return failed(DDL_ERROR_SYSTEM, errno_error("poll", errno).message());
  if (ready == 0 && give_up_.has_passed()) return lane_.timed_out(call_, deadline_.seconds);
  return {};
}

}  // namespace ddl::runtime
