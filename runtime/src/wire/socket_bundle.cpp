#include "runtime/src/wire/socket_bundle.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "runtime/src/common/settings.h"

namespace ddl::runtime {
namespace {

constexpr std::size_t kMaxSockets = kMaxSocketsPerPeer;
/// Fragments that go into one system call, each with its frame.
constexpr std::size_t kMaxFragments = 4;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

/// Limits the bytes in a socket's buffer that have not been sent yet: otherwise the first socket would take all
/// fragments into its buffer, however slow it is. Sockets of other kinds, in tests, have small buffers anyway.
void keep_buffer_short(int socket) {
  const int bytes = static_cast<int>(kFragmentBytes);
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

/// The unsent rest of fragments, as the arguments of one system call.
class Gather {
 public:
  void add(const SendQueue::Fragment& fragment) {
    const auto* frame =
        reinterpret_cast<const std::byte*>(&fragment.frame) + sizeof fragment.frame - fragment.frame_left;
    add(frame, fragment.frame_left);
    add(fragment.data, fragment.data_left);
  }
  ssize_t send_to(int socket) {
    msghdr message{};
    message.msg_iov = parts_.data();
    message.msg_iovlen = count_;
    return retry_eintr([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT); });
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void add(const std::byte* data, std::size_t size) {
    if (size == 0) return;
    parts_[count_++] = {const_cast<std::byte*>(data), size};  // NOLINT: iovec serves both directions
    bytes_ += size;
  }

  std::array<iovec, 2 * (kMaxFragments + 1)> parts_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

SocketBundle::SocketBundle(std::vector<UniqueFd> sockets) {
  DDL_CHECK(!sockets.empty() && sockets.size() <= kMaxSockets, std::to_string(sockets.size()) + " sockets");
  for (UniqueFd& socket : sockets) {
    if (sockets.size() > 1) keep_buffer_short(socket.get());
    sockets_.emplace_back().fd = std::move(socket);
  }
}

void SocketBundle::append_fds(std::vector<int>& fds) const {
  for (const Socket& socket : sockets_) fds.push_back(socket.fd.get());
}

void SocketBundle::append_entries(std::vector<pollfd>& entries) const {
  for (const Socket& socket : sockets_) {
    if (socket.state != State::kOpen) continue;
    const int events = (wants_bytes(socket) ? POLLIN : 0) | (has_to_send(socket) ? POLLOUT : 0);
    if (events != 0) entries.push_back({socket.fd.get(), static_cast<short>(events), 0});
  }
}

void SocketBundle::post_receive(std::span<std::byte> bytes, Pending& pending) {
  if (bytes.empty()) return;
  // Bytes that were read while the last slices were awaited, and are not a frame of theirs, belong to the ordered
  // stream.
  Socket& first = sockets_.front();
  const std::size_t had = std::min(first.head_bytes, bytes.size());
  auto* head = reinterpret_cast<std::byte*>(&first.head);
  std::memcpy(bytes.data(), head, had);
  std::memmove(head, head + had, first.head_bytes - had);
  first.head_bytes -= had;
  if (had == bytes.size()) return;
  ++pending;
  ordered_.push_back({bytes.subspan(had), &pending});
}

void SocketBundle::post_slice(const SliceFrame& frame, std::span<std::byte> bytes, Pending& pending) {
  if (!awaited_.await(frame, bytes, pending)) {
    ++pending;  // which will never end
    is_out_of_step_ = true;
  }
  match_waiting_frames();
}

void SocketBundle::begin_chunk(std::uint64_t call, std::uint32_t chunk, std::size_t longest) {
  if (!awaited_.begin_chunk(call, chunk, longest)) is_out_of_step_ = true;
  match_waiting_frames();
}

void SocketBundle::match_waiting_frames() {
  for (Socket& socket : sockets_) {
    if (socket.has_complete_head()) match_frame(socket);
  }
}

bool SocketBundle::wants_frame(const Socket& socket) const {
  if (!socket.to.empty() || socket.has_complete_head() || is_out_of_step_) return false;
  return is_first(socket) ? awaited_.has_unclaimed() : awaited_.has_unclaimed_cut();
}

bool SocketBundle::wants_bytes(const Socket& socket) const {
  return !socket.to.empty() || (is_first(socket) && !ordered_.empty()) || wants_frame(socket);
}

const std::string* SocketBundle::broken_why() const {
  if (!sends_any() && !receives_any()) return nullptr;
  bool is_any_open = false;
  for (const Socket& socket : sockets_) {
    is_any_open = is_any_open || socket.state == State::kOpen;
    if (socket.state == State::kOpen) continue;
    // A partner that has sent everything may have left before this rank has read all sockets to their end.
    const bool is_needed = socket.state == State::kBroken || socket.is_amid() || sends_any() ||
                           (is_first(socket) && (!ordered_.empty() || awaited_.has_unclaimed_uncut()));
    if (is_needed) return &socket.why;
  }
  return !is_any_open && awaited_.has_unclaimed() ? &sockets_.front().why : nullptr;
}

bool SocketBundle::move() {
  bool moved = false;
  // Data that have arrived can be received even if sending is broken.
  for (Socket& socket : sockets_) moved = move_receives(socket) || moved;
  return move_sends() || moved;
}

bool SocketBundle::move_sends() {
  bool moved = false;
  std::array<bool, kMaxSockets> is_full{};
  std::size_t idle = 0;  // consecutive sockets that had nothing to send or no space
  while (!sends_.is_empty() && idle < sockets_.size()) {
    const std::size_t index = turn_;
    turn_ = (turn_ + 1) % sockets_.size();
    if (!is_full[index] && send_some(sockets_[index], is_full[index])) {
      moved = true;
      idle = 0;
    } else {
      ++idle;
    }
  }
  return moved;
}

bool SocketBundle::send_some(Socket& socket, bool& is_full) {
  if (socket.state != State::kOpen) return false;
  std::array<SendQueue::Fragment, kMaxFragments> next;
  // With several sockets, each takes one fragment at a time; with one, everything goes there anyway.
  const std::size_t max_bytes = sockets_.size() > 1 ? kFragmentBytes : static_cast<std::size_t>(-1);
  const bool takes_more = !socket.sending || sockets_.size() == 1;
  const std::size_t count = takes_more ? sends_.peek(is_first(socket), next, max_bytes) : 0;
  Gather gather;
  if (socket.sending) gather.add(*socket.sending);
  for (std::size_t i = 0; i < count; ++i) gather.add(next[i]);
  if (gather.bytes() == 0) return false;
  const ssize_t sent = gather.send_to(socket.fd.get());
  if (sent < 0) {
    is_full = true;
    if (!would_block(errno)) {
      socket.state = State::kBroken;
      socket.why = std::strerror(errno);
    }
    return false;
  }
  auto left = static_cast<std::size_t>(sent);
  is_full = left < gather.bytes();
  const auto note = [&](SendQueue::Fragment& fragment) {
    const std::size_t part = std::min(left, fragment.left());
    left -= part;
    sends_.note_sent(fragment, part);
    return fragment.left() == 0;
  };
  if (socket.sending && note(*socket.sending)) socket.sending.reset();
  for (std::size_t i = 0; i < count && left > 0; ++i) {
    sends_.take(next[i]);
    if (!note(next[i])) socket.sending = next[i];
  }
  return true;
}

std::size_t SocketBundle::note_received(Socket& socket, ssize_t got) {
  if (got > 0) return static_cast<std::size_t>(got);
  if (got < 0 && would_block(errno)) return 0;
  if (socket.state != State::kOpen) return 0;
  socket.state = got == 0 ? State::kEnded : State::kBroken;
  socket.why = got == 0 ? "the connection was closed" : std::strerror(errno);
  return 0;
}

bool SocketBundle::move_receives(Socket& socket) {
  bool moved = false;
  while (socket.state != State::kEnded) {
    const bool got = is_first(socket) && !ordered_.empty() ? receive_ordered(socket)
                     : !socket.to.empty()                  ? receive_fragment(socket)
                                                           : wants_frame(socket) && receive_frame(socket);
    if (!got) return moved;
    moved = true;
  }
  return moved;
}

bool SocketBundle::receive_ordered(Socket& socket) {
  Ordered& next = ordered_.front();
  const std::size_t got = note_received(
      socket,
      retry_eintr([&] { return ::recv(socket.fd.get(), next.to.data(), next.to.size(), MSG_DONTWAIT); }));
  next.to = next.to.subspan(got);
  if (next.to.empty()) {
    --*next.pending;
    ordered_.pop_front();
  }
  return got > 0;
}

bool SocketBundle::receive_fragment(Socket& socket) {
  const std::size_t got = note_received(
      socket,
      retry_eintr([&] { return ::recv(socket.fd.get(), socket.to.data(), socket.to.size(), MSG_DONTWAIT); }));
  if (got == 0) return false;
  socket.to = socket.to.subspan(got);
  awaited_.note_arrived(socket.slice, got);
  return true;
}

bool SocketBundle::receive_frame(Socket& socket) {
  const auto rest = std::as_writable_bytes(std::span(&socket.head, 1)).subspan(socket.head_bytes);
  const std::size_t got = note_received(
      socket, retry_eintr([&] { return ::recv(socket.fd.get(), rest.data(), rest.size(), MSG_DONTWAIT); }));
  socket.head_bytes += got;
  if (socket.has_complete_head()) match_frame(socket);
  return got > 0;
}

void SocketBundle::match_frame(Socket& socket) {
  if (is_out_of_step_) return;
  // A partner that has sent all of its fragments, the last ones over other sockets, may have begun its next call on the
  // first.
  if (sockets_.size() > 1 && is_first(socket) && socket.head.magic == kOrderedMagic) return;
  const AwaitedSlices::Claim claim = awaited_.claim(socket.head);
  switch (claim.fit) {
    case AwaitedSlices::Fit::kLater: return;
    case AwaitedSlices::Fit::kWrong: is_out_of_step_ = true; return;
    case AwaitedSlices::Fit::kHere: break;
  }
  socket.slice = claim.slice;
  socket.to = claim.to;
  socket.head_bytes = 0;
}

}  // namespace ddl::runtime
