#include "launcher/control/job_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "launcher/protocol/codec.h"
#include "net/abstract_socket.h"

namespace ddl::launcher {
namespace {

constexpr int kClientBacklog = 16;
// With no descriptor left the socket stays readable: without a rest the loop would do nothing else.
constexpr auto kRest = std::chrono::seconds(1);

/// A small answer fits into the buffer of a new connection; if not, the client sees only the end.
void refuse_at_once(const UniqueFd& connection, const message::Refused& refusal) {
  const net::Frame frame = message::encode<message::JobToClient>(refusal);
  std::string bytes;
  net::append_frame(bytes, frame.type, frame.payload);
  (void)::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

JobServer::JobServer(EventLoop& loop, UniqueFd socket, OnRequest on_request,
                     std::chrono::milliseconds client_time)
    : loop_(loop), socket_(std::move(socket)), on_request_(std::move(on_request)), client_time_(client_time) {
  watch_ = loop_.watch(socket_.get(), [this] { on_connection(); });
}

Result<std::unique_ptr<JobServer>> JobServer::open(EventLoop& loop, const JobSocket& socket,
                                                   OnRequest on_request,
                                                   std::chrono::milliseconds client_time) {
  DDL_ASSIGN(listening, net::listen_abstract(socket.name(), kClientBacklog));
  return std::unique_ptr<JobServer>(
      new JobServer(loop, std::move(listening), std::move(on_request), client_time));
}

void JobServer::on_connection() {
  UniqueFd connection(
      retry_eintr([&] { return ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); }));
  if (!connection) {
    if (errno == EAGAIN || errno == ECONNABORTED) return;
    watch_.want_read(false);
    rest_ = loop_.after(kRest, [this] { watch_.want_read(true); });
    return;
  }
  const auto peer = net::peer_of(connection.get());
  if (!peer || (peer->uid != ::getuid() && peer->uid != 0)) {
    return refuse_at_once(connection, {"this job belongs to user " + std::to_string(::getuid()) +
                                       ": only that user and root may look at it"});
  }
  if (connections_.size() >= kMaxClients)
    return refuse_at_once(connection, {"too many others look at this job just now", true});
  const Client client = ++last_client_;
  Connection& one = connections_[client];
  one.link = make_stream_link(loop_, std::move(connection), {}, {}, kMaxRequestBytes);
  drop_after(client, client_time_);
  one.link->start({[this, client](const net::Frame& frame) { on_frame(client, frame); },
                   [this, client](const std::string&) { drop_after(client, {}); }});
}

void JobServer::on_frame(Client client, const net::Frame& frame) {
  const auto found = connections_.find(client);
  if (found == connections_.end()) return;
  if (std::exchange(found->second.has_asked, true)) return drop_after(client, {});
  auto request = message::decode<message::ClientToJob>(frame);
  if (!request) return answer(client, message::Refused{"the job was sent " + request.error().message()});
  on_request_(client, *std::move(request));
}

void JobServer::answer(Client client, const message::JobToClient& message) {
  answer(client, message::encode(message));
}

void JobServer::answer(Client client, const net::Frame& frame) {
  const auto found = connections_.find(client);
  if (found != connections_.end()) found->second.link->send(frame.type, frame.payload);
}

void JobServer::drop_after(Client client, std::chrono::steady_clock::duration delay) {
  const auto found = connections_.find(client);
  if (found != connections_.end())
    found->second.limit = loop_.after(delay, [this, client] { connections_.erase(client); });
}

}  // namespace ddl::launcher
