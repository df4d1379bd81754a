#include "runtime/src/wire/dialer.h"

#include <algorithm>
#include <cerrno>

#include "net/tcp.h"

namespace ddl::runtime {
namespace {

using net::Handshake;
using net::HandshakeSocket;

constexpr std::chrono::milliseconds kMaxPause{1000};

/// In addition to errno values: another process listens there.
constexpr int kAnotherRank = -1;

}  // namespace

Dialer::Dialer(const net::JobKey& key, const LinkHello& own_hello,
               const std::vector<net::SocketAddress>& peer_addresses,
               const std::vector<net::InterfaceAddress>& own_addresses)
    : key_(key), hello_(own_hello), own_addresses_(own_addresses) {
  for (const net::SocketAddress& address : peer_addresses) {
    Candidate& candidate = candidates_.emplace_back();
    candidate.address = address;
    candidate.in_own_network =
        std::any_of(own_addresses.begin(), own_addresses.end(), [&](const net::InterfaceAddress& own) {
          return own.prefix_bits > 0 && own.address.shares_prefix(address, own.prefix_bits);
        });
  }
  std::stable_partition(candidates_.begin(), candidates_.end(),
                        [](const Candidate& candidate) { return candidate.in_own_network; });
}

void Dialer::append_entries(std::vector<pollfd>& entries) const {
  for (const Candidate& candidate : candidates_) {
    if (candidate.attempt) entries.push_back({candidate.attempt->fd(), candidate.attempt->events(), 0});
  }
}

Deadline Dialer::next_deadline() const {
  Deadline next = start_next_at_;
  for (const Candidate& candidate : candidates_) {
    if (candidate.attempt && candidate.attempt->deadline().when() < next.when())
      next = candidate.attempt->deadline();
  }
  return next;
}

Status Dialer::advance() {
  if (is_done()) return {};
  if (start_next_at_.has_passed()) start_next();
  // A failure may start the next attempt, which comes later in the list, so this loop reaches it.
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    Candidate& candidate = candidates_[i];
    if (!candidate.attempt) continue;
    const auto state = candidate.attempt->advance();
    if (state && *state == Handshake::State::kDone) {
      DDL_TRY(take_connection(candidate));
      if (is_done()) return {};
      // An answer from another rank is recorded as a failure; otherwise a data connection comes next.
      return advance();
    }
    if (state) continue;
    candidate.failure = state.error().message();
    candidate.error = state.error().system_errno();
    candidate.attempt.reset();
    start_next();
  }
  return {};
}

bool Dialer::nobody_listens() const {
  // If another rank answers, the address belongs to another process; if the network refuses, the rank may have
  // another address.
  const auto says_nothing = [](const Candidate& candidate) {
    return candidate.error == ENETUNREACH || candidate.error == EHOSTUNREACH ||
           candidate.error == kAnotherRank;
  };
  const auto is_refused = [](const Candidate& candidate) { return candidate.error == ECONNREFUSED; };
  return std::any_of(candidates_.begin(), candidates_.end(), is_refused) &&
         std::all_of(candidates_.begin(), candidates_.end(), [&](const Candidate& candidate) {
           return is_refused(candidate) || says_nothing(candidate);
         });
}

void Dialer::start_next() {
  while (next_ < candidates_.size()) {
    Candidate& candidate = candidates_[next_++];
    if (candidate.attempt) continue;
    if (hello_.purpose == LinkPurpose::kControl) candidate.number = ++hello_.attempt;
    // A probe is never answered while the rank listens.
    const Deadline deadline =
        hello_.purpose == LinkPurpose::kProbe ? Deadline::never() : Deadline::after(kAttempt);
    auto attempt = HandshakeSocket::connect(candidate.address, key_, hello_.to_introduction(), deadline);
    if (attempt) {
      candidate.attempt.emplace(*std::move(attempt));
      candidate.failure = "not answered yet";
      // The last one runs alone until it fails.
      start_next_at_ = next_ < candidates_.size() ? Deadline::after(kHeadStart) : Deadline::never();
      return;
    }
    candidate.failure = attempt.error().message();
    candidate.error = attempt.error().system_errno();
  }
  const bool all_failed =
      std::none_of(candidates_.begin(), candidates_.end(),
                   [](const Candidate& candidate) { return candidate.attempt.has_value(); });
  start_next_at_ = Deadline::never();
  if (!all_failed) return;
  is_gone_ = nobody_listens();
  next_ = 0;
  start_next_at_ = Deadline::after(pause_);
  pause_ = std::min(2 * pause_, kMaxPause);
}

Status Dialer::take_connection(Candidate& candidate) {
  DDL_ASSIGN(peer, LinkHello::parse(candidate.attempt->peer()));
  if (peer.rank != hello_.to_rank || peer.generation != hello_.generation) {
    // An address such as a container bridge's belongs to a different process on every host.
    candidate.failure = "rank " + std::to_string(peer.rank) + " answers there";
    candidate.error = kAnotherRank;
    candidate.attempt.reset();
    start_next();
    return {};
  }
  if (hello_.purpose == LinkPurpose::kControl) {
    link_.control = candidate.attempt->release();
    link_.peer = peer;
    link_.how = describe(candidate);
    hello_.attempt = candidate.number;
    hello_.purpose = LinkPurpose::kData;
    if (is_done()) {
      candidates_.clear();
      start_next_at_ = Deadline::never();
      return {};
    }
    go_on_at(candidate.address);
    return {};
  }
  link_.data.push_back(candidate.attempt->release());
  hello_.socket = static_cast<std::uint16_t>(link_.data.size());
  if (!is_done()) {
    go_on_at(candidate.address);
    return {};
  }
  candidates_.clear();
  start_next_at_ = Deadline::never();
  return {};
}

void Dialer::go_on_at(const net::SocketAddress& address) {
  const net::SocketAddress same = address;  // a copy: the candidate that owns it is destroyed here
  candidates_.clear();
  candidates_.emplace_back().address = same;
  next_ = 0;
  start_next();
}

std::string Dialer::describe(const Candidate& winner) const {
  std::string text = winner.address.to_text();
  const auto own = net::local_address(link_.control.get());
  for (const net::InterfaceAddress& entry : own_addresses_) {
    if (own && entry.address.host_text() == own->host_text()) {
      text += " from " + entry.interface;
      break;
    }
  }
  text += winner.in_own_network ? ", in a network of this host" : ", in another network";
  for (const Candidate& candidate : candidates_) {
    if (&candidate == &winner || candidate.failure.empty()) continue;
    text += "; before it " + candidate.address.to_text() + ": " + candidate.failure;
  }
  return text;
}

std::string Dialer::failures() const {
  std::string text;
  for (const Candidate& candidate : candidates_) {
    text += (text.empty() ? "" : "; ") + candidate.address.to_text() + ": " +
            (candidate.failure.empty() ? "not tried yet" : candidate.failure);
  }
  return text;
}

}  // namespace ddl::runtime
