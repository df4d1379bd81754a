#include "runtime/src/wire/control_links.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>

#include "base/deadline.h"

namespace ddl::runtime {

namespace {

/// How long a frame waits for space. A wish to agree that is lost may leave the ranks asleep, and what comes after a
/// part of a frame cannot be read; a partner that reads nothing for so long is stopped, and then no call goes on.
constexpr std::chrono::seconds kSending{1};

/// While clocks are compared, the watching threads of both ranks wait for so long without sleeping: to be woken would
/// take longer than the round trip itself.
constexpr std::chrono::microseconds kSpinForTime{100};

}  // namespace

std::optional<ControlFrame> ControlFrame::parse(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(ControlFrame)) return std::nullopt;
  ControlFrame frame;
  std::memcpy(&frame, bytes.data(), sizeof frame);
  if (frame.magic != kMagic) return std::nullopt;
  if (frame.kind == Kind::kFarewell || frame.kind == Kind::kWanted || frame.kind == Kind::kAskTime ||
      frame.kind == Kind::kTime)
    return frame;
  if (frame.kind != Kind::kAbort || !is_abort_reason(static_cast<std::uint32_t>(frame.notice.reason)))
    return std::nullopt;
  return frame;
}

ControlLinks::ControlLinks(std::vector<PeerLink>& links, const AbortDomain& abort) : abort_(abort) {
  add(links);
}

void ControlLinks::add(std::vector<PeerLink>& links) {
  const std::lock_guard lock(mutex_);
  for (PeerLink& link : links) {
    Link& own = links_.emplace_back();
    own.peer = link.peer;
    own.socket = std::move(link.control);
    if (!forwarded_) continue;
    ControlFrame frame;
    frame.kind = ControlFrame::Kind::kAbort;
    frame.notice = abort_.notice();
    send(own, frame);
  }
}

std::size_t ControlLinks::size() const {
  const std::lock_guard lock(mutex_);
  return links_.size();
}

ControlLinks::Link& ControlLinks::link_at(std::size_t index) {
  const std::lock_guard lock(mutex_);
  return links_[index];
}

bool ControlLinks::on_readable(std::size_t index) {
  Link& link = link_at(index);
  Deadline spin = Deadline::never();
  for (;;) {
    const auto rest = std::span(link.buffer).subspan(link.received);
    const ssize_t got = retry_eintr([&] { return ::recv(link.socket.get(), rest.data(), rest.size(), 0); });
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (spin.is_never() || spin.has_passed()) return true;
      continue;
    }
    if (got == 0 || (got < 0 && errno == ECONNRESET)) {
      lose(link, AbortReason::kDied, "");
      return false;
    }
    if (got < 0) {
      lose(link, AbortReason::kLost, std::strerror(errno));
      return false;
    }
    link.received += static_cast<std::size_t>(got);
    if (link.received < link.buffer.size()) continue;
    link.received = 0;
    const auto frame = ControlFrame::parse(link.buffer);
    if (!frame) {
      lose(link, AbortReason::kBroken, "an invalid control message");
      return false;
    }
    if (frame->kind == ControlFrame::Kind::kFarewell) {
      set_state(link, PeerState::kLeft);
      // Acknowledges the farewell to the leaving rank.
      ::shutdown(link.socket.get(), SHUT_WR);
      if (on_wanted_) on_wanted_(0);
      return false;
    }
    if (frame->kind == ControlFrame::Kind::kWanted) {
      if (on_wanted_) on_wanted_(static_cast<std::uint32_t>(frame->notice.code));
      continue;
    }
    if (frame->kind == ControlFrame::Kind::kAskTime || frame->kind == ControlFrame::Kind::kTime) {
      on_time(link, *frame);
      spin = Deadline::after(kSpinForTime);
      continue;
    }
    abort_.raise(frame->notice);
  }
}

void ControlLinks::on_time(const Link& link, const ControlFrame& frame) {
  ControlFrame next;
  if (frame.kind == ControlFrame::Kind::kAskTime) {
    next.kind = ControlFrame::Kind::kTime;
    next.asked = frame.asked;
    next.answered = clock_ != nullptr ? clock_->exact_now() : kernel_now();
  } else {
    if (comparison_ == nullptr || !comparison_->add_answer(frame.asked, frame.answered)) return;
    next.kind = ControlFrame::Kind::kAskTime;
    next.asked = comparison_->next();
  }
  send(link, next);
}

void ControlLinks::compare_clock(std::size_t index, ClockComparison& comparison) {
  const Link& link = link_at(index);
  if (link.state != PeerState::kConnected) return;
  comparison_ = &comparison;
  ControlFrame question;
  question.kind = ControlFrame::Kind::kAskTime;
  question.asked = comparison.begin();
  send(link, question);
}

void ControlLinks::lose(Link& link, AbortReason reason, const std::string& text) {
  abort_.raise(AbortNotice::of(reason, link.peer, text));
  set_state(link, PeerState::kGone);
}

void ControlLinks::set_state(Link& link, PeerState state) {
  const std::lock_guard lock(mutex_);
  link.state = state;
  changed_.notify_all();
}

void ControlLinks::send(const Link& link, const ControlFrame& frame) {
  // The buffer of the socket may be full only if the partner's watching thread gets no CPU while its calls go on, or if
  // the partner is stopped. A partner that has gone needs no message.
  const Deadline deadline = Deadline::after(kSending);
  auto rest = std::as_bytes(std::span(&frame, 1));
  while (!rest.empty()) {
    const ssize_t sent = retry_eintr(
        [&] { return ::send(link.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
    if (sent >= 0) {
      rest = rest.subspan(static_cast<std::size_t>(sent));
      continue;
    }
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || deadline.has_passed()) return;
    pollfd entry{link.socket.get(), POLLOUT, 0};
    (void)::poll(&entry, 1, deadline.poll_milliseconds());
  }
}

void ControlLinks::forward_abort() {
  if (!abort_.is_raised()) return;
  ControlFrame frame;
  frame.kind = ControlFrame::Kind::kAbort;
  frame.notice = abort_.notice();
  const std::lock_guard lock(mutex_);
  for (const Link& link : links_) send(link, frame);
  forwarded_ = true;
  changed_.notify_all();
}

void ControlLinks::send_wanted(std::uint32_t call) {
  ControlFrame frame;
  frame.kind = ControlFrame::Kind::kWanted;
  frame.notice.code = static_cast<std::int32_t>(call);
  const std::lock_guard lock(mutex_);
  for (const Link& link : links_) {
    if (link.state == PeerState::kConnected) send(link, frame);
  }
}

void ControlLinks::wait_forwarded(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline.when(), [this] { return forwarded_; });
}

PeerState ControlLinks::wait_ended(std::size_t index, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const Link& link = links_[index];
  changed_.wait_until(lock, deadline.when(), [&] {
    return link.state != PeerState::kConnected || forwarded_ || abort_.is_raised();
  });
  return link.state;
}

std::optional<Member> ControlLinks::first_left() const {
  const std::lock_guard lock(mutex_);
  for (const Link& link : links_) {
    if (link.state == PeerState::kLeft) return link.peer;
  }
  return std::nullopt;
}

void ControlLinks::send_farewell() {
  if (abort_.is_raised() && !forwarded_) forward_abort();
  for (const Link& link : links_) {
    if (link.state != PeerState::kConnected) continue;
    send(link, ControlFrame());
    ::shutdown(link.socket.get(), SHUT_WR);
  }
}

void ControlLinks::wait_acknowledged(Deadline deadline) {
  std::array<std::byte, sizeof(ControlFrame)> scrap;
  for (const Link& link : links_) {
    if (link.state != PeerState::kConnected) continue;
    pollfd entry{link.socket.get(), POLLIN, 0};
    while (retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) > 0) {
      if (::recv(entry.fd, scrap.data(), scrap.size(), MSG_DONTWAIT) <= 0) break;
    }
  }
}

}  // namespace ddl::runtime
