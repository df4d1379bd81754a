#include "runtime/src/wire/acceptor.h"

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "net/tcp.h"

namespace ddl::runtime {
namespace {

using net::Handshake;
using net::HandshakeSocket;

constexpr int kBacklog = 128;
/// The maximum number of callers that are accepted before the accepted ones are answered.
constexpr int kCallersAtOnce = 32;

}  // namespace

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

Result<Acceptor> Acceptor::open(const std::vector<net::InterfaceAddress>& addresses,
                                std::chrono::milliseconds patience) {
  Acceptor acceptor;
  acceptor.patience_ = patience;
  Error last(ErrorCode::kUnavailable, "there is no address to listen on");
  for (const net::InterfaceAddress& entry : addresses) {
    auto listener = net::listen_tcp(entry.address, kBacklog);
    if (!listener) {
      // An address may be there but not usable, such as an IPv6 one that is still checked for duplicates.
      last = std::move(listener.error());
      continue;
    }
    DDL_ASSIGN(bound, net::local_address(listener->get()));
    acceptor.addresses_.push_back(bound);
    acceptor.listeners_.push_back(*std::move(listener));
  }
  if (acceptor.listeners_.empty()) return fail(std::move(last));
  return acceptor;
}

void Acceptor::append_entries(std::vector<pollfd>& entries) const {
  for (const UniqueFd& listener : listeners_) entries.push_back({listener.get(), POLLIN, 0});
  for (const HandshakeSocket& caller : callers_) entries.push_back({caller.fd(), caller.events(), 0});
}

Deadline Acceptor::next_deadline() const {
  // Deadlines stand in the order of arrival.
  return callers_.empty() ? Deadline::never() : callers_.front().deadline();
}

Result<std::vector<HandshakeSocket>> Acceptor::advance(const net::JobKey& key, const net::Introduction& own) {
  DDL_TRY(accept_callers(key, own));
  std::vector<HandshakeSocket> asked;
  for (HandshakeSocket& caller : early_) {
    if (!caller.deadline().has_passed()) asked.push_back(std::move(caller));
  }
  early_.clear();
  std::deque<HandshakeSocket> waiting;
  for (HandshakeSocket& caller : callers_) {
    const auto state = caller.advance();
    if (!state) {
      refuse(state.error().message());
    } else if (*state == Handshake::State::kAsked) {
      asked.push_back(std::move(caller));
    } else {
      waiting.push_back(std::move(caller));
    }
  }
  callers_ = std::move(waiting);
  return asked;
}

Status Acceptor::accept_callers(const net::JobKey& key, const net::Introduction& own) {
  for (const UniqueFd& listener : listeners_) {
    for (int i = 0; i < kCallersAtOnce; ++i) {
      auto socket = net::accept_tcp(listener.get());
      if (!socket) {
        if (callers_.empty() || !is_shortage(socket.error().system_errno()))
          return fail(std::move(socket.error()));
        make_room();
        continue;
      }
      if (!*socket) break;
      DDL_ASSIGN(caller, HandshakeSocket::answer(*std::move(socket), key, own, Deadline::after(patience_)));
      callers_.push_back(std::move(caller));
      if (callers_.size() <= max_callers_) continue;
      callers_.pop_front();
      refuse("too many were waiting");
    }
  }
  return {};
}

void Acceptor::make_room() {
  max_callers_ = callers_.size() / 2 + 1;
  const auto kept = callers_.size() / 2;
  while (callers_.size() > kept) {
    callers_.pop_front();
    refuse("no descriptor was left");
  }
}

void Acceptor::keep(HandshakeSocket caller) {
  early_.push_back(std::move(caller));
  // The rank that is dropped connects again.
  if (early_.size() > kMaxCallers) early_.pop_front();
}

std::vector<int> Acceptor::fds() const {
  std::vector<int> fds;
  for (const UniqueFd& listener : listeners_) fds.push_back(listener.get());
  return fds;
}

void Acceptor::refuse(const std::string& why) {
  ++refused_;
  last_refusal_ = why;
}

std::string Acceptor::refusals() const {
  if (refused_ == 0) return "";
  return counted(refused_, "caller") + (refused_ == 1 ? " was" : " were") +
         " turned away, the last because: " + last_refusal_;
}

}  // namespace ddl::runtime
