#include "runtime/src/message/message_sockets.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "contract/environment.h"
#include "runtime/src/shm/fd_passing.h"

namespace ddl::runtime {
namespace {

using net::Handshake;
using net::HandshakeSocket;

constexpr std::chrono::seconds kCallerPatience{10};
constexpr std::chrono::milliseconds kRedialPause{2};
/// Callers of this host that have not proved themselves; further ones wait.
constexpr std::size_t kMaxLocalCallers = 64;

std::string message_endpoint_key(const Membership& membership) {
  return "ddl.msg." + std::to_string(membership.generation);
}

}  // namespace

Status MessageSockets::prepare(Bootstrap& bootstrap) {
  DDL_TRY(key_.publish(bootstrap, settings_.job_key_fd));
  if (membership_.local_members().size() > 1) {
    constexpr std::size_t kSocketNameBytes = 16;
    DDL_ASSIGN(name, random_hex(kSocketNameBytes));
    name_ = "ddl-" + name;
    DDL_ASSIGN(listener,
               listen_local(name_, std::max(128, static_cast<int>(membership_.local_members().size()))));
    local_listener_ = std::move(listener);
  }
  if (membership_.layout.host_count() > 1) {
    DDL_ASSIGN(all, net::local_addresses());
    DDL_ASSIGN(addresses, net::usable_addresses(all, settings_.network_interfaces));
    DDL_ASSIGN(acceptor, Acceptor::open(addresses));
    addresses_ = std::move(addresses);
    acceptor_.emplace(std::move(acceptor));
  }
  return {};
}

Status MessageSockets::publish(Bootstrap& bootstrap) {
  membership_ = bootstrap.membership();
  if (membership_.size == 1) return {};
  const Status prepared = prepare(bootstrap);
  TcpEndpoint endpoint;
  endpoint.host = HostField::of(membership_.host).str();
  endpoint.pid = ::getpid();
  endpoint.failure = "it has no connections to other hosts";
  if (acceptor_) endpoint.addresses = acceptor_->addresses();
  if (!prepared) endpoint.failure = failure_ = prepared.error().message();
  return bootstrap.put(message_endpoint_key(membership_),
                       (name_.empty() ? "-" : name_) + " " + endpoint.to_text());
}

std::vector<int> MessageSockets::listeners() const {
  std::vector<int> fds;
  if (acceptor_) fds = acceptor_->fds();
  if (local_listener_) fds.push_back(local_listener_.get());
  return fds;
}

Status MessageSockets::start(Bootstrap& bootstrap) {
  if (!failure_.empty()) return fail(ErrorCode::kUnavailable, failure_);
  return key_.fetch(bootstrap, Deadline::after(kCallerPatience));
}

LinkHello MessageSockets::hello_to(int rank) const {
  LinkHello hello;
  hello.generation = membership_.generation;
  hello.rank = membership_.rank;
  hello.to_rank = rank;
  hello.size = membership_.size;
  hello.pid = ::getpid();
  hello.use = LinkUse::kMessages;
  hello.sockets = 0;
  hello.host = HostField::of(membership_.host);
  return hello;
}

bool MessageSockets::belongs(const LinkHello& caller) const {
  return caller.use == LinkUse::kMessages && caller.purpose == LinkPurpose::kControl &&
         caller.to_rank == membership_.rank && caller.generation == membership_.generation &&
         caller.size == membership_.size && caller.rank >= 0 && caller.rank < caller.size &&
         caller.rank != membership_.rank;
}

// To other ranks.

Status MessageSockets::dial(Bootstrap& bootstrap, int rank) {
  DDL_ASSIGN(text, bootstrap.get(rank, message_endpoint_key(membership_), Deadline::after(kCallerPatience)));
  const std::size_t space = text.find(' ');
  if (space == std::string::npos)
    return fail(ErrorCode::kProtocol, "rank " + std::to_string(rank) + ": its address is invalid");
  const std::string name = text.substr(0, space);
  if (membership_.layout.host_of(rank) == membership_.layout.own && name != "-") {
    // An abstract address has 107 bytes after its leading zero (unix(7)).
    if (name.empty() || name.size() > 107)
      return fail(ErrorCode::kProtocol, "rank " + std::to_string(rank) + ": its address is invalid");
    Local local;
    local.rank = rank;
    local.name = name;
    local.again = Deadline::after(Deadline::Clock::duration::zero());
    locals_.push_back(std::move(local));
    return {};
  }
  DDL_ASSIGN(endpoint, TcpEndpoint::parse(std::string_view(text).substr(space + 1)));
  if (endpoint.addresses.empty())
    return fail(ErrorCode::kUnavailable, "rank " + std::to_string(rank) + ": " + endpoint.failure);
  dialers_.emplace_back(*key_, hello_to(rank), endpoint.addresses, addresses_);
  return {};
}

Status MessageSockets::begin_local(Local& local) const {
  local.again = Deadline::never();
  auto socket = connect_local_now(local.name);
  if (!socket && socket.error().system_errno() == EAGAIN) {
    local.again = Deadline::after(kRedialPause);
    return {};
  }
  if (!socket) return fail(std::move(socket.error()));
  // A rank answers when it gets to it.
  DDL_ASSIGN(handshake, HandshakeSocket::over(*std::move(socket), *key_,
                                              hello_to(local.rank).to_introduction(), Deadline::never()));
  local.handshake.emplace(std::move(handshake));
  return {};
}

Status MessageSockets::dial_local(std::vector<Made>& made, std::vector<int>& gone) {
  for (auto local = locals_.begin(); local != locals_.end();) {
    Status begun;
    if (!local->handshake && local->again.has_passed()) begun = begin_local(*local);
    bool is_done = false;
    if (begun && local->handshake) {
      const auto state = local->handshake->advance();
      const auto peer = state && *state == Handshake::State::kDone
                            ? LinkHello::parse(local->handshake->peer())
                            : fail(ErrorCode::kBusy, "");
      if (peer) {
        const auto credentials = peer_credentials(local->handshake->fd());
        made.push_back({true,
                        {local->rank, peer->host.str(), peer->pid},
                        credentials ? credentials->pid : 0,
                        local->handshake->release()});
        is_done = true;
      } else if (!state || *state == Handshake::State::kDone) {
        begun = fail(ErrorCode::kClosed, "the rank has hung up");
      }
    }
    if (!begun && is_shortage(begun.error().system_errno())) return begun;
    if (!begun) gone.push_back(local->rank);
    local = is_done || !begun ? locals_.erase(local) : std::next(local);
  }
  return {};
}

Status MessageSockets::dial_remote(std::vector<Made>& made, std::vector<int>& gone) {
  for (auto dialer = dialers_.begin(); dialer != dialers_.end();) {
    DDL_TRY(dialer->advance());
    const bool is_done = dialer->is_done(), is_gone = dialer->is_gone();
    if (is_done) {
      DialedLink link = dialer->take();
      made.push_back({true, link.peer.member(), 0, std::move(link.control)});
    } else if (is_gone) {
      gone.push_back(dialer->to_rank());
    }
    dialer = is_done || is_gone ? dialers_.erase(dialer) : std::next(dialer);
  }
  return {};
}

// From other ranks.

Status MessageSockets::accept_local() {
  while (local_listener_ && local_callers_.size() < kMaxLocalCallers) {
    UniqueFd socket(retry_eintr(
        [&] { return ::accept4(local_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); }));
    if (!socket) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
      if (errno == ECONNABORTED) continue;
      return fail_errno("accept");
    }
    const auto credentials = peer_credentials(socket.get());
    if (!credentials || credentials->uid != ::geteuid()) continue;  // closes it
    DDL_ASSIGN(caller, HandshakeSocket::answer(std::move(socket), *key_, hello_to(-1).to_introduction(),
                                               Deadline::after(kCallerPatience)));
    local_callers_.push_back(std::move(caller));
  }
  return {};
}

void MessageSockets::answer(std::list<HandshakeSocket>& callers, std::vector<Made>& made) const {
  for (auto caller = callers.begin(); caller != callers.end();) {
    auto state = caller->advance();
    if (state && *state == Handshake::State::kAsked) {
      const auto peer = LinkHello::parse(caller->peer());
      if (peer && belongs(*peer)) {
        caller->accept();
        state = caller->advance();
      } else {
        state = fail(ErrorCode::kClosed, "it does not belong here");
      }
    }
    const bool is_done = state && *state == Handshake::State::kDone;
    if (is_done) {
      const auto credentials = peer_credentials(caller->fd());  // of TCP there are none
      if (const auto peer = LinkHello::parse(caller->peer()))
        made.push_back({false, peer->member(), credentials ? credentials->pid : 0, caller->release()});
    }
    caller = is_done || !state ? callers.erase(caller) : std::next(caller);
  }
}

// Both.

void MessageSockets::append_entries(std::vector<pollfd>& entries) const {
  if (local_listener_ && local_callers_.size() < kMaxLocalCallers)
    entries.push_back({local_listener_.get(), POLLIN, 0});
  if (acceptor_) acceptor_->append_entries(entries);
  for (const HandshakeSocket& caller : local_callers_) entries.push_back({caller.fd(), caller.events(), 0});
  for (const HandshakeSocket& caller : welcomed_) entries.push_back({caller.fd(), caller.events(), 0});
  for (const Local& local : locals_) {
    if (local.handshake) entries.push_back({local.handshake->fd(), local.handshake->events(), 0});
  }
  for (const Dialer& dialer : dialers_) dialer.append_entries(entries);
}

Deadline MessageSockets::next_deadline() const {
  Deadline next = Deadline::never();
  const auto until = [&next](Deadline other) { next = other.when() < next.when() ? other : next; };
  if (acceptor_) until(acceptor_->next_deadline());
  for (const HandshakeSocket& caller : local_callers_) until(caller.deadline());
  for (const HandshakeSocket& caller : welcomed_) until(caller.deadline());
  for (const Local& local : locals_) until(local.again);
  for (const Dialer& dialer : dialers_) until(dialer.next_deadline());
  return next;
}

Status MessageSockets::advance(std::vector<Made>& made, std::vector<int>& gone) {
  Status advanced = dial_and_accept(made, gone);
  if (!advanced && is_shortage(advanced.error().system_errno()))
    advanced.error().during("making a connection for messages (see ulimit -n)");
  return advanced;
}

Status MessageSockets::dial_and_accept(std::vector<Made>& made, std::vector<int>& gone) {
  DDL_TRY(dial_local(made, gone));
  DDL_TRY(dial_remote(made, gone));
  if (!key_.is_known()) return {};
  DDL_TRY(accept_local());
  answer(local_callers_, made);
  if (!acceptor_) return {};
  DDL_ASSIGN(asked, acceptor_->advance(*key_, hello_to(-1).to_introduction()));
  for (HandshakeSocket& caller : asked) welcomed_.push_back(std::move(caller));
  answer(welcomed_, made);
  return {};
}

void MessageSockets::close() {
  local_listener_.reset();
  acceptor_.reset();
  local_callers_.clear();
  welcomed_.clear();
  locals_.clear();
  dialers_.clear();
}

}  // namespace ddl::runtime
