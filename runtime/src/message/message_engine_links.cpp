// The links of an engine: connecting, what arrives, and how they end.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/src/message/message_engine.h"

namespace ddl::runtime {
namespace {

/// How long a rank that leaves waits until the others have taken what it sent.
constexpr std::chrono::seconds kFarewellLimit{10};
/// A rank that notices a death reports it within this time.
constexpr std::chrono::seconds kLinkDeathReport{1};

}  // namespace

// What arrives.

Status MessageEngine::on_frame(MessageLink& link, const MessageFrame& frame,
                               std::span<const std::byte> payload) {
  using Kind = MessageFrame::Kind;
  const bool opens = frame.kind == Kind::kOpen;
  if (!link.is_own() && link.is_open == opens)
    return fail(ErrorCode::kProtocol, "a connection for messages was opened twice, or not at all");
  switch (frame.kind) {
    case Kind::kOpen:
      if (!incoming_.emplace(link.rank(), links_.at(link.fd())).second)
        return fail(ErrorCode::kProtocol, "a second connection for messages was opened");
      link.is_open = true;
      return {};
    case Kind::kEager:
    case Kind::kAnnounce: {
      if (life_ != Life::kOpen) return {};  // nobody receives any more
      Arrival arrival;
      arrival.set = frame.set;
      arrival.tag = frame.tag;
      arrival.bytes = frame.bytes;
      arrival.dtype = frame.dtype;
      arrival.number = frame.number;
      arrival.address = frame.address;
      if ((arrival.number != 0) != (frame.kind == Kind::kAnnounce)) break;
      take_arrival(link, std::move(arrival), payload);
      return {};
    }
    case Kind::kGrant:
    case Kind::kTaken:
    case Kind::kDropped:
    case Kind::kRefused: {
      MessagePtr message = take_announced(link, frame.number);
      if (!message && life_ == Life::kOpen) break;
      if (!message) return {};  // it has been given up
      if (frame.kind == Kind::kGrant) {
        link.post_data(frame.number, std::move(message));
        flush(link);
      } else if (frame.kind == Kind::kTaken) {
        complete(message);
      } else if (frame.kind == Kind::kDropped) {
        complete(message, fail(DDL_ERROR_ABORTED, describe_dropped(link.peer.describe(), *message)));
      } else {
        complete(message,
                 fail(DDL_ERROR_MISMATCH,
                      describe_mismatch(world_->self().describe(),
                                        describe_size(message->bytes, message->dtype), link.peer.describe(),
                                        describe_size(frame.bytes, frame.dtype), message->tag)));
      }
      return {};
    }
    case Kind::kCredit: link.credit += frame.bytes; return {};
    case Kind::kFarewell:
      link.has_left = true;
      // Once the connection is closed, the sender may use its memory again.
      finish_copies(link);
      note_left(link.rank());
      forget(link);
      return {};
    case Kind::kData: break;
  }
  return fail(ErrorCode::kProtocol, "an unexpected frame arrived on the connection for messages");
}

Result<std::span<std::byte>> MessageEngine::place_of(MessageLink& link, const MessageFrame& frame) {
  const auto granted = link.granted.find(frame.number);
  if (granted == link.granted.end() || granted->second->bytes != frame.bytes)
    return fail(ErrorCode::kProtocol, "data arrived that nobody expects");
  return std::span(granted->second->buffer + frame.offset, frame.length);
}

void MessageEngine::on_data(MessageLink& link, const MessageFrame& frame) {
  if (frame.offset + frame.length < frame.bytes) return;
  const auto granted = link.granted.find(frame.number);
  if (granted == link.granted.end()) return;
  const MessagePtr receive = std::move(granted->second);
  link.granted.erase(granted);
  complete(receive);
}

// Links.

tl::expected<MessageEngine::LinkPtr, Failure> MessageEngine::link_to(int rank) {
  if (const auto found = outgoing_.find(rank); found != outgoing_.end()) return found->second;
  DDL_TRY(sockets_.dial(*bootstrap_, rank).map_error(to_failure));
  auto link = std::make_shared<MessageLink>(rank, true);
  link->post(MessageFrame::of(MessageFrame::Kind::kOpen));
  outgoing_.emplace(rank, link);
  if (is_asleep_) kick();
  return link;
}

void MessageEngine::add_link(MessageSockets::Made made) {
  LinkPtr link;
  if (made.is_own) {
    const auto found = outgoing_.find(made.peer.rank);
    if (found == outgoing_.end()) return;
    link = found->second;
  } else {
    link = std::make_shared<MessageLink>(made.peer.rank, false);
  }
  link->peer = made.peer;
  link->pid = made.pid;
  link->reads_memory = made.pid > 0;
  link->connect(std::move(made.socket));
  links_.insert_or_assign(link->fd(), link);
  if (const Status watched = watch_input(link->fd()); !watched)
    return give_up(AbortNotice::of(AbortReason::kFailed, world_->self(), watched.error().message()));
  guard_descriptors();
  flush(*link);
}

Status MessageEngine::watch_input(int fd) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return fail_errno("epoll_ctl");
  return {};
}

void MessageEngine::guard_descriptors() {
  std::vector<int> fds = sockets_.listeners();
  for (const auto& [fd, link] : links_) fds.push_back(fd);
  closed_in_child_.reset();
  closed_in_child_ = std::make_unique<ClosedInForkedChild>(std::move(fds));
}

void MessageEngine::forget(MessageLink& link) {
  links_.erase(link.fd());
  // The program may get a descriptor of this number.
  guard_descriptors();
  link.close();
}

void MessageEngine::forget_all_links() {
  const auto links = std::exchange(links_, {});
  guard_descriptors();
  for (const auto& [fd, link] : links) link->close();
}

void MessageEngine::flush(MessageLink& link) {
  if (!link.is_connected() || link.is_shut) return;
  if (!link.send(*this)) {
    // What has arrived before the end is still read, and shows the end.
    link.is_shut = true;
  }
  const bool is_wanted = link.has_output() && !link.is_shut;
  if (is_wanted == link.is_watched) return;
  link.is_watched = is_wanted;
  epoll_event event{};
  event.events = EPOLLIN | (is_wanted ? EPOLLOUT : 0u);
  event.data.fd = link.fd();
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.fd(), &event);
}

void MessageEngine::serve(const LinkPtr& link, std::uint32_t events) {
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    if (const Status received = link->receive(*this); !received && link->is_connected())
      end_link(*link, received.error());
  }
  if (link->is_connected()) flush(*link);
}

void MessageEngine::end_link(MessageLink& link, const Error& error) {
  forget(link);
  // A rank that connects may try several addresses, and chooses one.
  const bool was_chosen = link.is_own() || link.is_open;
  if (!was_chosen || link.has_left || left_.contains(link.rank()) || aborted_ || life_ != Life::kOpen) return;
  if (error.code() == ErrorCode::kProtocol)
    return give_up(AbortNotice::of(AbortReason::kBroken, link.peer, error.message()));
  const bool has_ended = error.code() == ErrorCode::kClosed || error.system_errno() == ECONNRESET;
  lost_.emplace(link.rank(),
                std::pair(Deadline::after(kLinkDeathReport),
                          has_ended ? AbortNotice::of(AbortReason::kDied, link.peer)
                                    : AbortNotice::of(AbortReason::kLost, link.peer, error.message())));
}

// Ranks that leave, and this one.

bool MessageEngine::needs(int rank) const {
  const auto link = outgoing_.find(rank);
  return matching_.waiting_for(rank) != nullptr || (link != outgoing_.end() && link->second->has_messages);
}

void MessageEngine::note_left(int rank) {
  left_.insert(rank);
  const auto own = outgoing_.find(rank);
  const auto other = incoming_.find(rank);
  const bool is_missed =
      matching_.waiting_for(rank) != nullptr || matching_.waiting_in_vain(left_, this->rank()) != nullptr ||
      (other != incoming_.end() && !other->second->granted.empty()) ||
      (own != outgoing_.end() && (!own->second->announced.empty() || own->second->has_data()));
  if (is_missed && life_ == Life::kOpen) give_up(AbortNotice::of(AbortReason::kLeft, who_is(rank)));
}

void MessageEngine::miss(const MessagePtr& message) {
  open_.insert(message);
  const auto is_other = [this](int one) { return one != rank(); };
  const auto& ranks = message->job_ranks;
  const int missing =
      message->peer != DDL_ANY_RANK ? message->peer : *std::find_if(ranks.begin(), ranks.end(), is_other);
  give_up(AbortNotice::of(AbortReason::kLeft, who_is(missing)));
}

void MessageEngine::fail_open() {
  while (!copies_.empty()) finish_copies(*copies_.front().link);
  // What has been announced or granted may be read or written until the links have ended.
  for (const MessagePtr& message : matching_.clear())
    complete(message, fail(DDL_ERROR_ABORTED, "this rank left the job during " + message->describe()));
}

void MessageEngine::end_links(Lock& lock, bool own, Deadline deadline) {
  std::vector<LinkPtr> ending;
  const auto is_ending = [this](const LinkPtr& link) {
    return link->has_left || left_.contains(link->rank()) || link->is_shut;
  };
  for (const auto& [rank, link] : outgoing_) {
    // One that is not connected yet, and over which nothing is to go, is given up.
    if (own && !is_ending(link) && (link->is_connected() || link->has_messages)) ending.push_back(link);
  }
  for (const auto& [fd, link] : links_) {
    // Also those over which nothing has come yet: the other rank may wait for a message.
    if (!own && !link->is_own() && !is_ending(link)) ending.push_back(link);
  }
  for (const LinkPtr& link : ending) {
    link->post(MessageFrame::of(MessageFrame::Kind::kFarewell));
    flush(*link);
  }
  const auto has_ended = [this, own](const LinkPtr& link) {
    if (link->is_connected() && !link->has_output() && !link->is_shut) {
      ::shutdown(link->fd(), SHUT_WR);
      link->is_shut = true;
    }
    // One that was never connected may be to a rank that listens no more.
    return link->is_connected() ? false
                                : !own || link->is_shut || link->has_left || left_.contains(link->rank());
  };
  while (!aborted_ && !deadline.has_passed()) {
    std::erase_if(ending, has_ended);
    if (ending.empty()) return;
    (void)drive(lock, Driver::kWaiter, deadline);
  }
}

void MessageEngine::leave() {
  if (fork_count() != fork_count_ || world_ == nullptr) return;
  // Not under the lock, which the watching thread takes.
  if (const Watcher::Ticket ticket = std::exchange(ticket_, 0); ticket != 0) job_.watcher.remove(ticket);
  Lock lock(mutex_);
  if (life_ == Life::kClosed) return;
  if (life_ == Life::kOpen) {
    life_ = Life::kLeaving;
    kick();
    resume_.notify_all();
    changed_.wait(lock, [this] { return driver_ == Driver::kNone; });
    fail_open();
    const Deadline deadline = Deadline::after(kFarewellLimit);
    end_links(lock, true, deadline);
    // Who connects from now on notices that nobody listens.
    sockets_.close();
    guard_descriptors();
    end_links(lock, false, deadline);
  }
  life_ = Life::kClosed;
  sockets_.close();
  forget_all_links();
  outgoing_.clear();
  incoming_.clear();
  const auto open = std::exchange(open_, {});
  for (const MessagePtr& message : open)
    complete(message, fail(DDL_ERROR_ABORTED, "this rank left the job during " + message->describe()));
  closed_in_child_.reset();
  lock.unlock();
  if (thread_.joinable()) thread_.join();
}

}  // namespace ddl::runtime
