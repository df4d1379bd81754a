#include "runtime/src/wire/tcp_transport.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "contract/environment.h"
#include "net/tcp.h"
#include "runtime/src/common/call.h"
#include "runtime/src/common/interruption.h"

namespace ddl::runtime {
namespace {

using net::Handshake;
using net::HandshakeSocket;

}  // namespace

void LinkSetup::expect(int host, int rank) {
  Pending& link = links_.emplace_back();
  link.host = host;
  link.rank = rank;
}

void LinkSetup::expect(int host, int rank, const std::vector<net::SocketAddress>& addresses) {
  expect(host, rank);
  LinkHello hello = hello_;
  hello.to_rank = rank;
  hello.purpose = LinkPurpose::kProbe;
  links_.back().probe.emplace(key_, hello, addresses, own_addresses_);
}

void LinkSetup::dial(int host, int rank, const std::vector<net::SocketAddress>& addresses) {
  expect(host, rank);
  LinkHello hello = hello_;
  hello.to_rank = rank;
  links_.back().dialer.emplace(key_, hello, addresses, own_addresses_);
}

Result<std::vector<PeerLink>> LinkSetup::run(Deadline deadline, int doorbell) {
  const auto all_done = [this] {
    return std::all_of(links_.begin(), links_.end(), [](const Pending& link) { return link.is_done; });
  };
  for (;;) {
    DDL_TRY(advance());
    if (all_done()) break;
    if (deadline.has_passed()) return fail(ErrorCode::kTimeout, "not connected in time: " + missing());
    if (auto waited = wait(deadline, doorbell); !waited) {
      // What has arrived meanwhile may have completed a link for its partner.
      (void)advance();
      return fail(std::move(waited.error()));
    }
  }
  for (const Pending& link : links_) DDL_TRY(check(link));
  return take_established();
}

std::vector<PeerLink> LinkSetup::take_established() {
  std::vector<PeerLink> links;
  const auto add = [&](Pending& link, UniqueFd control) {
    const Member peer = link.peer ? link.peer->member() : Member{link.rank, "another host", 0};
    links.push_back(
        {link.host, peer, std::move(control), std::exchange(link.data, {}), std::exchange(link.how, {})});
  };
  for (Pending& link : links_) {
    if (link.control) add(link, std::move(link.control));
    for (auto& [attempt, control] : link.controls) add(link, std::move(control));
    if (!link.dialer) continue;
    if (DialedLink dialed = link.dialer->take(); dialed.control) {
      link.peer = dialed.peer;
      add(link, std::move(dialed.control));
    }
  }
  return links;
}

Status LinkSetup::wait(Deadline deadline, int doorbell) const {
  std::vector<pollfd> entries{{doorbell, POLLIN, 0}};
  Deadline next = deadline;
  const auto until = [&next](Deadline other) { next = other.when() < next.when() ? other : next; };
  acceptor_.append_entries(entries);
  until(acceptor_.next_deadline());
  for (const HandshakeSocket& caller : welcomed_) entries.push_back({caller.fd(), caller.events(), 0});
  for (const Pending& link : links_) {
    for (const std::optional<Dialer>* dialer : {&link.dialer, &link.probe}) {
      if (!*dialer) continue;
      (*dialer)->append_entries(entries);
      until((*dialer)->next_deadline());
    }
  }
  if (poll_interruptibly(entries, next) < 0) return fail_errno("poll");
  if (entries.front().revents != 0) return fail(ErrorCode::kClosed, "the ranks were aborted meanwhile");
  return {};
}

Status LinkSetup::advance() {
  DDL_TRY(advance_callers());
  for (Pending& link : links_) {
    if (link.is_done) link.probe.reset();
    if (link.probe) {
      DDL_TRY(link.probe->advance());
      if (link.probe->is_gone()) return note_gone(link, *link.probe);
    }
    if (!link.dialer) continue;
    DDL_TRY(link.dialer->advance());
    if (hello_.use != LinkUse::kLane && link.dialer->is_gone()) return note_gone(link, *link.dialer);
    if (!link.dialer->is_done()) continue;
    DialedLink dialed = link.dialer->take();
    link.dialer.reset();
    link.peer = dialed.peer;
    link.control = std::move(dialed.control);
    link.data = std::move(dialed.data);
    link.how = std::move(dialed.how);
    link.is_done = true;
  }
  return {};
}

Status LinkSetup::advance_callers() {
  DDL_ASSIGN(asked, acceptor_.advance(key_, hello_.to_introduction()));
  for (HandshakeSocket& caller : asked) {
    DDL_ASSIGN(peer, LinkHello::parse(caller.peer()));
    if (expected_of(peer) != nullptr) {
      caller.accept();
      welcomed_.push_back(std::move(caller));
    } else if (belongs(peer)) {
      acceptor_.keep(std::move(caller));
    }
    // Any other rank of this job has connected to an address that belongs to another process on its own host:
    // dropped.
  }
  std::vector<HandshakeSocket> waiting;
  for (HandshakeSocket& caller : welcomed_) {
    const auto state = caller.advance();
    if (!state) continue;  // it will call again
    if (*state != Handshake::State::kDone) {
      waiting.push_back(std::move(caller));
      continue;
    }
    const auto peer = LinkHello::parse(caller.peer());
    Pending* link = peer ? expected_of(*peer) : nullptr;
    if (link == nullptr) continue;
    take_connection(*link, *peer, caller.release());
  }
  welcomed_ = std::move(waiting);
  return {};
}

void LinkSetup::take_connection(Pending& link, const LinkHello& peer, UniqueFd socket) const {
  if (peer.purpose == LinkPurpose::kControl) {
    if (!link.control) link.controls[peer.attempt] = std::move(socket);
    return;
  }
  if (!link.control) {
    const auto taken = link.controls.find(peer.attempt);
    if (taken == link.controls.end())
      return;  // names a connection that it never had: no rank of the job does that
    const auto from = net::peer_address(taken->second.get());
    link.how = "a connection from " + (from ? from->to_text() : std::string("an unknown address"));
    link.peer = peer;
    link.control = std::move(taken->second);
    link.controls.clear();
    link.data.resize(hello_.sockets);
  }
  if (peer.attempt != link.peer->attempt || peer.socket >= link.data.size()) return;
  link.data[peer.socket] = std::move(socket);
  // A partner that wants another number of data connections makes one, and check() fails on both sides.
  link.is_done = peer.sockets != hello_.sockets ||
                 std::all_of(link.data.begin(), link.data.end(),
                             [](const UniqueFd& data) { return static_cast<bool>(data); });
}

LinkSetup::Pending* LinkSetup::expected_of(const LinkHello& caller) {
  if (!belongs(caller) || caller.use != hello_.use || caller.purpose == LinkPurpose::kProbe) return nullptr;
  const auto found = std::find_if(links_.begin(), links_.end(), [&](const Pending& link) {
    return link.rank == caller.rank && !link.dialer && !link.is_done;
  });
  return found == links_.end() ? nullptr : &*found;
}

bool LinkSetup::belongs(const LinkHello& caller) const {
  return caller.to_rank == hello_.rank && caller.generation == hello_.generation &&
         caller.size == hello_.size && caller.rank >= 0 && caller.rank < hello_.size &&
         caller.rank != hello_.rank;
}

Status LinkSetup::note_gone(const Pending& link, const Dialer& dialer) {
  gone_ = link.rank;
  return fail(ErrorCode::kNotFound,
              "rank " + std::to_string(link.rank) + " listens no more (" + dialer.failures() + ")");
}

Status LinkSetup::check(const Pending& link) const {
  if (link.peer->sockets != hello_.sockets) {
    return fail(ErrorCode::kInvalidArgument,
                "the hosts want different numbers of data connections: " + link.peer->member().label() + " " +
                    std::to_string(link.peer->sockets) + ", " + hello_.member().label() + " " +
                    std::to_string(hello_.sockets) + "; " + contract::env::kSocketsPerPeer +
                    " must be the same everywhere");
  }
  if (link.peer->agreed == hello_.agreed) return {};
  return fail(ErrorCode::kInvalidArgument,
              "the hosts cut buffers differently: " + link.peer->member().label() + " into " +
                  std::to_string(link.peer->agreed) + " bytes, " + hello_.member().label() + " into " +
                  std::to_string(hello_.agreed) + "; " + contract::env::kStagingBytes +
                  " must be the same everywhere");
}

std::string LinkSetup::missing() const {
  std::string text;
  for (const Pending& link : links_) {
    if (link.is_done) continue;
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(link.rank);
    if (link.dialer) text += " (" + link.dialer->failures() + ")";
  }
  const std::string refusals = acceptor_.refusals();
  return refusals.empty() ? text : text + "; " + refusals;
}

namespace {

std::string endpoint_key(const Membership& membership) {
  return "ddl.tcp." + std::to_string(membership.generation);
}

}  // namespace

Result<TcpTransport::Published> TcpTransport::prepare(Bootstrap& bootstrap) const {
  SharedKey key("ddl.key");
  DDL_TRY(key.publish(bootstrap, settings_.job_key_fd));
  DDL_ASSIGN(all, net::local_addresses());
  DDL_ASSIGN(addresses, net::usable_addresses(all, settings_.interfaces));
  DDL_ASSIGN(acceptor, Acceptor::open(addresses, settings_.patience));
  return Published{std::move(addresses), std::move(acceptor), std::move(key)};
}

Status TcpTransport::publish(Bootstrap& bootstrap) {
  published_ = prepare(bootstrap);
  TcpEndpoint endpoint;
  endpoint.host = HostField::of(bootstrap.membership().host).str();
  endpoint.pid = ::getpid();
  if (*published_) {
    endpoint.addresses = (*published_)->acceptor.addresses();
  } else {
    // Published for the ranks that would connect, which otherwise would try until their time limit.
    endpoint.failure = published_->error().message();
  }
  return bootstrap.put(endpoint_key(bootstrap.membership()), endpoint.to_text());
}

Result<TcpEndpoint> TcpTransport::endpoint_of(Bootstrap& bootstrap, int rank, Deadline deadline) {
  DDL_ASSIGN(text, bootstrap.get(rank, endpoint_key(bootstrap.membership()), deadline));
  auto endpoint = TcpEndpoint::parse(text);
  if (!endpoint) return fail(std::move(endpoint.error().during("rank " + std::to_string(rank))));
  return endpoint;
}

Member TcpTransport::who_is(Bootstrap& bootstrap, int rank) const {
  const auto endpoint = endpoint_of(bootstrap, rank, Deadline::after_seconds(settings_.seconds));
  return endpoint ? Member{rank, endpoint->host, endpoint->pid} : Member{rank, "an unknown host", 0};
}

Result<std::vector<PeerLink>> TcpTransport::connect(Bootstrap& bootstrap,
                                                    const std::vector<LinkPartner>& partners,
                                                    const LinkTerms& terms) {
  DDL_CHECK(published_.has_value(), "publish() comes first");
  if (!*published_) return fail(published_->error());
  Published& published = **published_;
  const Membership& membership = bootstrap.membership();
  const bool may_wait_long = terms.use != LinkUse::kLane;
  const Deadline soon = Deadline::after_seconds(settings_.seconds);
  DDL_TRY(published.key.fetch(bootstrap, soon));

  LinkHello hello;
  hello.generation = membership.generation;
  hello.rank = membership.rank;
  hello.size = membership.size;
  hello.pid = ::getpid();
  hello.use = terms.use;
  hello.agreed = terms.agreed;
  hello.sockets = static_cast<std::uint16_t>(settings_.sockets);
  hello.host = HostField::of(membership.host);
  LinkSetup setup(*published.key, hello, published.acceptor, published.addresses);
  for (const LinkPartner& partner : partners) {
    if (!partner.connects && !may_wait_long) {
      setup.expect(partner.host, partner.rank);
      continue;
    }
    DDL_ASSIGN(endpoint, endpoint_of(bootstrap, partner.rank, soon));
    if (endpoint.addresses.empty()) {
      return fail(ErrorCode::kUnavailable, "rank " + std::to_string(partner.rank) + ": " + endpoint.failure);
    }
    if (partner.connects) {
      setup.dial(partner.host, partner.rank, endpoint.addresses);
    } else {
      setup.expect(partner.host, partner.rank, endpoint.addresses);
    }
  }
  fault_.pass(FaultPoint::kBeforeLinks);
  auto links =
      setup.run(may_wait_long ? terms.limit.deadline : terms.limit.sooner(soon), terms.limit.doorbell);
  if (!links) established_ = setup.take_established();
  gone_ = setup.gone();
  fault_.pass(FaultPoint::kAfterLinks);
  return links;
}

std::vector<int> TcpTransport::fds() const {
  return published_ && *published_ ? (*published_)->acceptor.fds() : std::vector<int>();
}

}  // namespace ddl::runtime
