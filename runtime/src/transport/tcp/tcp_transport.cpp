#include "runtime/src/transport/tcp/tcp_transport.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "contract/environment.h"
#include "runtime/src/channel/call.h"
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
  card.host = HostField::of(bootstrap.membership().host).str();
  card.pid = ::getpid();
  if (*offer_) {
    card.addresses = (*offer_)->gate.addresses();
  } else {
    // Said to those that would call, which otherwise would try until their time is over.
    card.failure = offer_->error().message();
  }
  return bootstrap.put(card_key(bootstrap.membership()), card.to_text());
}

Result<BusinessCard> TcpTransport::card_of(Bootstrap& bootstrap, int rank, Deadline deadline) {
  auto text = bootstrap.get(rank, card_key(bootstrap.membership()), deadline);
  if (!text) return fail(std::move(text.error()));
  auto card = BusinessCard::parse(*text);
  if (!card) return fail(std::move(card.error().during("rank " + std::to_string(rank))));
  return card;
}

Member TcpTransport::who_is(Bootstrap& bootstrap, int rank) const {
  const auto card = card_of(bootstrap, rank, Deadline::after_seconds(settings_.seconds));
  return card ? Member{rank, card->host, card->pid} : Member{rank, "an unknown host", 0};
}

Status TcpTransport::fetch_key(Bootstrap& bootstrap, Deadline deadline) {
  std::optional<net::JobKey>& key = (*offer_)->key;
  if (key) return {};
  auto hex = bootstrap.get(0, secret_key(bootstrap.membership()), deadline);
  if (!hex) return fail(std::move(hex.error().during("fetching the job's key")));
  auto fetched = net::JobKey::from_hex(*hex);
  wipe_text(*hex);
  if (!fetched) return fail(std::move(fetched.error()));
  key.emplace(*std::move(fetched));
  return {};
}

Result<std::vector<PeerLink>> TcpTransport::connect(Bootstrap& bootstrap,
                                                    const std::vector<LinkPartner>& partners,
                                                    const LinkTerms& terms) {
  DDL_CHECK(offer_.has_value(), "offer() comes first");
  if (!*offer_) return fail(offer_->error());
  Offer& offer = **offer_;
  const Membership& membership = bootstrap.membership();
  const bool is_pair = terms.use == LinkUse::kPair;
  const Deadline soon = Deadline::after_seconds(settings_.seconds);
  DDL_TRY(fetch_key(bootstrap, soon));

  LinkHello hello;
  hello.generation = membership.generation;
  hello.rank = membership.rank;
  hello.size = membership.size;
  hello.pid = ::getpid();
  hello.use = terms.use;
  hello.agreed = terms.agreed;
  hello.sockets = static_cast<std::uint16_t>(settings_.sockets);
  hello.host = HostField::of(membership.host);
  LinkMeeting meeting(*offer.key, hello, offer.gate, offer.addresses);
  for (const LinkPartner& partner : partners) {
    if (!partner.calls && !is_pair) {
      meeting.expect(partner.host, partner.rank);
      continue;
    }
    auto card = card_of(bootstrap, partner.rank, soon);
    if (!card) return fail(std::move(card.error()));
    if (card->addresses.empty()) {
      return fail(ErrorCode::kUnavailable, "rank " + std::to_string(partner.rank) + ": " + card->failure);
    }
    if (partner.calls) {
      meeting.dial(partner.host, partner.rank, card->addresses);
    } else {
      meeting.expect(partner.host, partner.rank, card->addresses);
    }
  }
  fault_.pass(FaultPoint::kBeforeLinks);
  auto links = meeting.run(is_pair ? terms.limit.deadline : terms.limit.sooner(soon), terms.limit.doorbell);
  if (!links) standing_ = meeting.take_standing();
  fault_.pass(FaultPoint::kAfterLinks);
  return links;
}

std::vector<int> TcpTransport::fds() const {
  return offer_ && *offer_ ? (*offer_)->gate.fds() : std::vector<int>();
}

}  // namespace ddl::runtime
