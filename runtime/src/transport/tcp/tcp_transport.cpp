#include "runtime/src/transport/tcp/tcp_transport.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "contract/environment.h"
#include "runtime/src/transport/tcp/business_card.h"
#include "runtime/src/transport/tcp/link_meeting.h"

namespace ddl::runtime {
namespace {

std::string card_key(const Membership& membership) {
  return "ddl.tcp." + std::to_string(membership.generation);
}
std::string secret_key(const Membership& membership) {
  return "ddl.key." + std::to_string(membership.generation);
}

void wipe_text(std::string& text) { net::wipe(std::as_writable_bytes(std::span(text.data(), text.size()))); }

}  // namespace

Result<TcpTransport::Offer> TcpTransport::prepare(Bootstrap& bootstrap) const {
  const Membership& membership = bootstrap.membership();
  std::optional<net::JobKey> key;
  if (settings_.job_key_fd) {
    auto inherited = net::JobKey::from_memfd(*settings_.job_key_fd);
    if (!inherited) return fail(std::move(inherited.error().during(contract::env::kJobKeyFd)));
    key.emplace(*std::move(inherited));
  } else if (membership.rank == 0) {
    auto made = net::JobKey::random();
    if (!made) return fail(std::move(made.error()));
    std::string hex = made->to_hex();
    const Status put = bootstrap.put(secret_key(membership), hex);
    wipe_text(hex);
    if (!put) return fail(put.error());
    key.emplace(*std::move(made));
  }
  auto all = net::local_addresses();
  if (!all) return fail(std::move(all.error()));
  auto addresses = net::usable_addresses(*all, settings_.interfaces);
  if (!addresses) return fail(std::move(addresses.error()));
  auto gate = CallerGate::open(*addresses, settings_.patience);
  if (!gate) return fail(std::move(gate.error()));
  return Offer{*std::move(addresses), *std::move(gate), std::move(key)};
}

Status TcpTransport::offer(Bootstrap& bootstrap) {
  offer_ = prepare(bootstrap);
  BusinessCard card;
  if (*offer_) {
    card.addresses = (*offer_)->gate.addresses();
  } else {
    // Said to those that would call, which otherwise would try until their time is over.
    card.failure = offer_->error().message();
  }
  return bootstrap.put(card_key(bootstrap.membership()), card.to_text());
}

Result<std::vector<PeerLink>> TcpTransport::connect(Bootstrap& bootstrap, const std::vector<int>& hosts,
                                                    std::uint64_t agreed) {
  DDL_CHECK(offer_.has_value(), "offer() comes first");
  if (!*offer_) return fail(offer_->error());
  Offer& offer = **offer_;
  const Membership& membership = bootstrap.membership();
  const Deadline deadline = Deadline::after_seconds(settings_.seconds);
  if (!offer.key) {
    auto hex = bootstrap.get(0, secret_key(membership), deadline);
    if (!hex) return fail(std::move(hex.error().during("fetching the job's key")));
    auto key = net::JobKey::from_hex(*hex);
    wipe_text(*hex);
    if (!key) return fail(std::move(key.error()));
    offer.key.emplace(*std::move(key));
  }

  LinkHello hello;
  hello.generation = membership.generation;
  hello.rank = membership.rank;
  hello.size = membership.size;
  hello.pid = ::getpid();
  hello.agreed = agreed;
  hello.sockets = static_cast<std::uint16_t>(settings_.sockets);
  hello.host = HostField::of(membership.host);
  LinkMeeting meeting(*offer.key, hello, offer.gate, offer.addresses);
  const auto lane = static_cast<std::size_t>(membership.local_rank());
  for (const int host : hosts) {
    const int rank = membership.layout.hosts[static_cast<std::size_t>(host)][lane];
    if (host > membership.layout.own) {
      meeting.expect(host, rank);
      continue;
    }
    auto text = bootstrap.get(rank, card_key(membership), deadline);
    if (!text) return fail(std::move(text.error()));
    auto card = BusinessCard::parse(*text);
    if (!card) return fail(std::move(card.error().during("rank " + std::to_string(rank))));
    if (card->addresses.empty()) {
      return fail(ErrorCode::kUnavailable, "rank " + std::to_string(rank) + ": " + card->failure);
    }
    meeting.dial(host, rank, card->addresses);
  }
  fault_.pass("init", "before_links");
  auto links = meeting.run(deadline);
  fault_.pass("init", "after_links");
  return links;
}

}  // namespace ddl::runtime
