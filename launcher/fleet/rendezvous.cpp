#include "launcher/fleet/rendezvous.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <span>

#include "base/deadline.h"
#include "launcher/protocol/codec.h"
#include "net/tcp.h"

namespace ddl::launcher {

namespace {

using Step = net::TlsStream::Step;

constexpr std::size_t kBufferSize = std::size_t{16} << 10;  // a TLS record's worth
constexpr std::chrono::seconds kHandshakeDeadline{10};
constexpr std::chrono::seconds kLastBytesDeadline{1};
// A connection that is not authenticated yet costs memory and a descriptor. If there are more of them than this,
// the one that has waited longest is closed. An agent needs only two round trips to authenticate, so many
// unauthenticated connections at once do not exclude it.
constexpr std::size_t kMaxUnauthenticated = 256;
// Without a free descriptor no connection can be accepted, but the listener stays readable: it is not polled for
// this time.
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};

}  // namespace

/// A local socket and a TLS connection between which bytes are copied; lives on the pump's thread.
class TlsPump::Connection {
 public:
  Connection(EventLoop& loop, net::TlsStream stream, FindLocalEnd find_local_end,
             std::function<void()> on_refused, std::function<void(Connection*)> on_closed)
      : loop_(loop),
        stream_(std::move(stream)),
        find_local_end_(std::move(find_local_end)),
        on_refused_(std::move(on_refused)),
        on_closed_(std::move(on_closed)) {
    remote_watch_ = loop.watch(
        stream_.fd(), [this] { step(); }, [this] { step(); });
    deadline_ = loop.after(kHandshakeDeadline, [this] { close(); });
  }

  /// The handshake is not complete yet.
  bool is_unauthenticated() const { return !is_authenticated_ && !is_closed_; }
  void reject() { close(); }

  void step() {
    if (is_closed_) return;
    if (!is_authenticated_ && !handshake()) return;
    // Until neither direction makes progress: TLS may hold bytes that no event of the socket announces.
    while (copy_to_peer() || copy_from_peer()) {
    }
    if (is_closed_) return;
    remote_watch_.want_read(from_remote_.empty());
    remote_watch_.want_write(!from_local_.empty());
    local_watch_.want_read(from_local_.empty() && !local_has_ended_);
    local_watch_.want_write(!from_remote_.empty());
  }

 private:
  bool handshake() {
    switch (stream_.handshake()) {
      case Step::kDone: break;
      case Step::kWantRead: remote_watch_.want_write(false); return false;
      case Step::kWantWrite: remote_watch_.want_write(true); return false;
      default: close(); return false;
    }
    is_authenticated_ = true;
    deadline_.cancel();
    local_ = find_local_end_(stream_.peer_identity());
    if (!local_) {
      close();
      return false;
    }
    (void)set_nonblocking(local_.get(), true);
    local_watch_ = loop_.watch(
        local_.get(), [this] { step(); }, [this] { step(); });
    return true;
  }

  /// From the local end to the peer. True if bytes were copied.
  bool copy_to_peer() {
    if (is_closed_) return false;
    bool moved = false;
    if (from_local_.empty() && !local_has_ended_) {
      const ssize_t got = retry_eintr([&] { return ::read(local_.get(), buffer_.data(), buffer_.size()); });
      if (got > 0) from_local_.assign(buffer_.data(), got);
      if (got == 0 || (got < 0 && errno != EAGAIN)) local_has_ended_ = true;
      moved = got > 0;
    }
    if (!from_local_.empty()) {
      std::size_t put = 0;
      const Step done = stream_.write(from_local_, put);
      if (done == Step::kDone) {
        from_local_.erase(0, put);
        moved = true;
      } else if (done == Step::kClosed || done == Step::kFailed) {
        close();
        return false;
      }
    }
    if (local_has_ended_ && from_local_.empty()) close();
    return moved && !is_closed_;
  }

  /// From the peer to the local end. True if bytes were copied.
  bool copy_from_peer() {
    if (is_closed_) return false;
    bool moved = false;
    if (from_remote_.empty() && !remote_has_ended_) {
      std::size_t got = 0;
      const Step done = stream_.read(buffer_, got);
      if (done == Step::kDone) {
        from_remote_.assign(buffer_.data(), got);
        moved = true;
      } else if (done == Step::kClosed || done == Step::kFailed) {
        remote_has_ended_ = true;
      }
    }
    if (!from_remote_.empty()) {
      const ssize_t put = retry_eintr(
          [&] { return ::send(local_.get(), from_remote_.data(), from_remote_.size(), MSG_NOSIGNAL); });
      if (put > 0) {
        from_remote_.erase(0, put);
        moved = true;
      } else if (errno != EAGAIN) {
        close();
        return false;
      }
    }
    if (remote_has_ended_ && from_remote_.empty()) close();
    return moved && !is_closed_;
  }

  void close() {
    if (is_closed_) return;
    is_closed_ = true;
    if (is_authenticated_) {
      stream_.close_notify();
    } else if (on_refused_) {
      on_refused_();
    }
    deadline_.cancel();
    remote_watch_.reset();
    local_watch_.reset();
    on_closed_(this);
  }

  EventLoop& loop_;
  net::TlsStream stream_;
  UniqueFd local_;
  FindLocalEnd find_local_end_;
  std::function<void()> on_refused_;
  std::function<void(Connection*)> on_closed_;
  std::array<char, kBufferSize> buffer_;
  std::string from_local_;
  std::string from_remote_;
  EventLoop::FdWatch remote_watch_;
  EventLoop::FdWatch local_watch_;
  EventLoop::Timer deadline_;
  bool is_authenticated_ = false;
  bool local_has_ended_ = false;
  bool remote_has_ended_ = false;
  bool is_closed_ = false;
};

TlsPump::TlsPump()
    : thread_([this] {
        // Signals are for the thread that watches them.
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
        // Keeps the loop running while there is no connection.
        EventLoop::Timer forever = loop_.after(std::chrono::hours(24 * 365), [] {});
        loop_.run();
      }) {}

TlsPump::~TlsPump() {
  loop_.post([this] {
    is_ending_ = true;
    accept_again_.cancel();
    listener_watch_.reset();
    for (auto& [connection, owner] : connections_) connection->step();
    flush_timer_ = loop_.after(kLastBytesDeadline, [this] { loop_.stop(); });
    if (connections_.empty()) loop_.stop();
  });
  thread_.join();
}

void TlsPump::carry(net::TlsStream stream, UniqueFd far_end, std::function<void()> on_refused) {
  auto shared = std::make_shared<net::TlsStream>(std::move(stream));
  auto far = std::make_shared<UniqueFd>(std::move(far_end));
  loop_.post([this, shared, far, on_refused = std::move(on_refused)] {
    open(
        std::move(*shared), [far](const std::string&) { return std::move(*far); }, on_refused);
  });
}

TlsPump::Connection* TlsPump::open(net::TlsStream stream, FindLocalEnd find_local_end,
                                   std::function<void()> on_refused) {
  auto connection = std::make_unique<Connection>(loop_, std::move(stream), std::move(find_local_end),
                                                 std::move(on_refused), [this](Connection* closed) {
                                                   // Not from within its own step.
                                                   loop_.post([this, closed] {
                                                     std::erase(unauthenticated_, closed);
                                                     connections_.erase(closed);
                                                     if (is_ending_ && connections_.empty()) loop_.stop();
                                                   });
                                                 });
  Connection* const raw = connection.get();
  connections_.emplace(raw, std::move(connection));
  raw->step();
  return raw;
}

void TlsPump::accept(UniqueFd listener, net::TlsStream::FindKey find_key, FindLocalEnd find_local_end) {
  auto owned = std::make_shared<UniqueFd>(std::move(listener));
  loop_.post([this, owned, find_key = std::move(find_key), find_local_end = std::move(find_local_end)] {
    listener_ = std::move(*owned);
    find_key_ = find_key;
    find_local_end_ = find_local_end;
    (void)set_nonblocking(listener_.get(), true);
    listener_watch_ = loop_.watch(listener_.get(), [this] { on_connection(); });
  });
}

void TlsPump::on_connection() {
  auto socket = net::accept_tcp(listener_.get());
  if (!socket) {
    // Most likely there is no free descriptor. Unauthenticated connections hold some; if there are none, wait.
    if (reject_oldest(1)) return;
    listener_watch_.want_read(false);
    accept_again_ = loop_.after(kPauseWithoutDescriptors, [this] { listener_watch_.want_read(true); });
    return;
  }
  if (!*socket) return;
  reject_oldest(kMaxUnauthenticated);
  auto stream = net::TlsStream::accepted(std::move(*socket), find_key_);
  if (!stream) return;
  unauthenticated_.push_back(open(*std::move(stream), find_local_end_, {}));
}

bool TlsPump::reject_oldest(std::size_t min_count) {
  std::erase_if(unauthenticated_,
                [](const Connection* connection) { return !connection->is_unauthenticated(); });
  if (unauthenticated_.size() < min_count) return false;
  Connection* const oldest = unauthenticated_.front();
  unauthenticated_.pop_front();
  oldest->reject();
  return true;
}

void TlsPump::stop_accepting() {
  loop_.post([this] {
    accept_again_.cancel();
    listener_watch_.reset();
    listener_.reset();
    while (reject_oldest(1)) {
    }
  });
}

namespace {

constexpr int kBacklog = 1024;

/// Only its connection is visible here: why it ended is known to the process that started it.
class JoinedProcess : public AgentProcess {
 public:
  std::string how_it_ended() override {
    return "its connection closed: its step, its node or its agent has ended";
  }
  Error why_not_started(std::string_view, std::string_view) override {
    return {ErrorCode::kClosed, "it connected and closed the connection before it sent anything"};
  }
  void clean_up(Deadline) override {}
};

}  // namespace

Result<std::unique_ptr<RendezvousStarter>> RendezvousStarter::listen(net::JobKey key, std::string nonce) {
  DDL_ASSIGN(listener, net::listen_tcp_everywhere(kBacklog));
  DDL_ASSIGN(address, net::local_address(listener.get()));
  std::unique_ptr<RendezvousStarter> starter(new RendezvousStarter(std::move(key), std::move(nonce)));
  starter->port_ = address.port();
  starter->pump_.accept(
      std::move(listener),
      [self = starter.get()](std::string_view identity) { return self->key_of(identity); },
      [self = starter.get()](const std::string& identity) { return self->local_end_of(identity); });
  return starter;
}

Result<StartedAgent> RendezvousStarter::start(const AllocatedNode& node) {
  DDL_ASSIGN(pair, make_socket_pair(SOCK_STREAM));
  {
    const std::lock_guard lock(mutex_);
    expected_[node.name] = std::move(pair.second);
  }
  return StartedAgent{std::move(pair.first), {}, {}, nonce_, std::make_unique<JoinedProcess>()};
}

std::optional<net::PresharedKey> RendezvousStarter::key_of(std::string_view identity) {
  const std::lock_guard lock(mutex_);
  if (!expected_.contains(identity)) return std::nullopt;
  return net::preshared_key(key_, identity);
}

UniqueFd RendezvousStarter::local_end_of(const std::string& identity) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(identity);
  if (found == expected_.end()) return {};
  UniqueFd end = std::move(found->second);
  expected_.erase(found);
  // All have connected: a closed listener cannot be attacked.
  if (expected_.empty()) pump_.stop_accepting();
  return end;
}

namespace {

constexpr std::size_t kMaxJoinBytes = std::size_t{64} << 10;
constexpr std::chrono::seconds kTimeoutPerAddress{3};

Deadline sooner(Deadline a, Deadline b) { return a.when() < b.when() ? a : b; }

Result<UniqueFd> connect_within(const net::SocketAddress& address, Deadline deadline) {
  DDL_ASSIGN(socket, net::begin_connect(address));
  pollfd waited{socket.get(), POLLOUT, 0};
  const int ready = retry_eintr([&] { return ::poll(&waited, 1, deadline.poll_milliseconds()); });
  if (ready <= 0) return fail(ErrorCode::kTimeout, address.to_text() + ": no answer");
  if (auto status = net::connect_result(socket.get()); !status)
    return fail(Error(status.error()).during(address.to_text()));
  return socket;
}

}  // namespace

Result<message::Join> read_join(int fd) {
  net::FrameDecoder decoder(kMaxJoinBytes);
  std::array<std::byte, 4096> buffer;
  for (;;) {
    const ssize_t got = retry_eintr([&] { return ::read(fd, buffer.data(), buffer.size()); });
    if (got < 0) return fail_errno("read");
    if (got == 0) return fail(ErrorCode::kClosed, "ddlrun ended before it sent the address to connect to");
    decoder.append(std::span(buffer).first(got));
    DDL_ASSIGN(frame, decoder.next());
    if (!frame) continue;
    auto message = message::decode<message::HeadToJoiningAgent>(*frame);
    if (!message) return fail(message.error().code(), "ddlrun sent " + message.error().message());
    return std::get<message::Join>(*std::move(message));
  }
}

Result<UniqueFd> connect_to_rendezvous(const message::Join& join, std::chrono::milliseconds patience) {
  const Deadline deadline = Deadline::after(patience);
  std::string reason = "no address was given";
  for (const std::string& text : join.addresses) {
    const bool is_v6 = text.find(':') != std::string::npos;
    const auto address =
        net::SocketAddress::parse((is_v6 ? "[" + text + "]:" : text + ":") + std::to_string(join.port));
    if (!address) continue;
    auto socket = connect_within(*address, sooner(deadline, Deadline::after(kTimeoutPerAddress)));
    if (socket) return socket;
    reason = socket.error().message();
  }
  return fail(ErrorCode::kUnavailable, "the first node of the job cannot be reached: " + reason);
}

}  // namespace ddl::launcher
