#include "launcher/http/http_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/own_thread.h"
#include "base/text.h"
#include "net/job_key.h"
#include "net/socket_owner.h"
#include "net/tcp.h"

namespace ddl::launcher {
namespace {

// If accept() fails for lack of descriptors, the connection stays in the queue, and the listener readable.
constexpr timeval kListenerRest{1, 0};
// libevent has no name for it.
constexpr int kUnauthorized = 401;

timeval to_timeval(std::chrono::milliseconds time) {
  return {static_cast<time_t>(time.count() / 1000), static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

tl::unexpected<Error> fail_libevent(const char* what) {
  return fail(ErrorCode::kSystem, std::string("libevent could not make ") + what);
}

const char* method_name(evhttp_cmd_type type) {
  switch (type) {
    case EVHTTP_REQ_GET: return "GET";
    case EVHTTP_REQ_PUT: return "PUT";
    default: return "DELETE";  // no other is allowed
  }
}

std::string header(evhttp_request* request, const char* name) {
  const char* const value = ::evhttp_find_header(::evhttp_request_get_input_headers(request), name);
  return value != nullptr ? value : "";
}

bool has_token(evhttp_request* request, const std::string& token) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string given = header(request, "Authorization");
  if (in_lower_case(given.substr(0, kScheme.size())) != kScheme) return false;
  const std::string_view word = std::string_view(given).substr(kScheme.size());
  return net::is_same_secret(std::as_bytes(std::span(word)), std::as_bytes(std::span(token)));
}

}  // namespace

struct FreeEventObject {
  void operator()(event_base* base) const { ::event_base_free(base); }
  void operator()(event* one) const { ::event_free(one); }
  void operator()(evbuffer* buffer) const { ::evbuffer_free(buffer); }
};
template <class Object>
using EventObject = std::unique_ptr<Object, FreeEventObject>;

/// The server as libevent sees it. Constructed and destroyed on the loop's thread; between, all but post_answer() and
/// post_stop() is called on the server's own.
class HttpSide {
 public:
  using Deliver = std::function<void(HttpServer::Id, HttpRequest&&)>;

  static Result<std::unique_ptr<HttpSide>> make(const HttpLimits& limits, const HttpAccess& access,
                                                Deliver deliver);
  ~HttpSide();
  HttpSide(const HttpSide&) = delete;
  HttpSide& operator=(const HttpSide&) = delete;

  const net::SocketAddress& address() const { return access_.address; }
  /// Until post_stop(). May be called again.
  void run() {
    wake();  // for answers that have waited for it
    ::event_base_loop(base_.get(), EVLOOP_NO_EXIT_ON_EMPTY);
    const std::lock_guard lock(mutex_);
    is_stopped_ = false;
  }
  void post_answer(HttpServer::Id id, HttpAnswer answer);
  void post_stop();

 private:
  struct Connection {
    HttpSide* side = nullptr;
    bufferevent* stream = nullptr;      ///< a reference of our own
    evhttp_connection* http = nullptr;  ///< once admitted
    bool needs_token = false;           ///< its user is not one of those who are served
    EventObject<event> turn;            ///< first to admit it, then to end it
  };
  struct Answer {
    HttpServer::Id id = 0;
    HttpAnswer answer;
  };

  HttpSide(const HttpLimits& limits, const HttpAccess& access, Deliver deliver)
      : limits_(limits), access_(access), deliver_(std::move(deliver)) {}
  Status set_up();
  bufferevent* add_connection();
  void take_turn(Connection& connection);
  bool is_known(uid_t user) const;
  void admit(Connection& connection);
  void erase(const Connection& connection);
  void on_request(evhttp_request* request);
  void on_wake();
  void reply(const Answer& answer);
  void send(evhttp_request* request, const HttpAnswer& answer);
  void wake();

  HttpLimits limits_;
  HttpAccess access_;
  Deliver deliver_;
  net::SocketLookup lookup_{};

  std::mutex mutex_;  ///< for the next two
  std::vector<Answer> answers_;
  bool is_stopped_ = false;
  UniqueFd wake_;

  // In this order: events are freed before their base.
  EventObject<event_base> base_;
  EventObject<event> wake_event_;
  evhttp* http_ = nullptr;
  evconnlistener* listener_ = nullptr;  ///< http_ owns it
  std::unordered_map<bufferevent*, Connection> connections_;
  std::map<HttpServer::Id, evhttp_request*> waiting_;
  HttpServer::Id last_id_ = 0;
};

Result<std::unique_ptr<HttpSide>> HttpSide::make(const HttpLimits& limits, const HttpAccess& access,
                                                 Deliver deliver) {
  std::unique_ptr<HttpSide> side(new HttpSide(limits, access, std::move(deliver)));
  DDL_TRY(side->set_up());
  return side;
}

Status HttpSide::set_up() {
  DDL_ASSIGN(lookup, net::find_socket_lookup());
  lookup_ = lookup;
  DDL_ASSIGN(socket, net::listen_tcp(access_.address, SOMAXCONN));
  DDL_ASSIGN(address, net::local_address(socket.get()));
  access_.address = address;
  wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return fail_errno("eventfd");

  // Without locks: only one thread uses the base. libpmix switches locks on for the whole process.
  const std::unique_ptr<event_config, decltype(&::event_config_free)> config(::event_config_new(),
                                                                             &::event_config_free);
  if (!config || ::event_config_set_flag(config.get(), EVENT_BASE_FLAG_NOLOCK) != 0 ||
      ::event_config_set_flag(config.get(), EVENT_BASE_FLAG_IGNORE_ENV) != 0)
    return fail_libevent("its configuration");
  base_.reset(::event_base_new_with_config(config.get()));
  if (!base_) return fail_libevent("an event base");
  wake_event_.reset(::event_new(
      base_.get(), wake_.get(), EV_READ | EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<HttpSide*>(self)->on_wake(); }, this));
  if (!wake_event_ || ::event_add(wake_event_.get(), nullptr) != 0) return fail_libevent("an event");

  http_ = ::evhttp_new(base_.get());
  if (!http_) return fail_libevent("an HTTP server");
  ::evhttp_set_max_headers_size(http_, static_cast<ev_ssize_t>(limits_.header_bytes));
  ::evhttp_set_max_body_size(http_, static_cast<ev_ssize_t>(limits_.body_bytes));
  ::evhttp_set_allowed_methods(http_, EVHTTP_REQ_GET | EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE);
  // What is left of a body that is too long is read before 413 is sent: otherwise the kernel would reset the
  // connection, and the client would not see the answer.
  ::evhttp_set_flags(http_, EVHTTP_SERVER_LINGERING_CLOSE);
  ::evhttp_set_default_content_type(http_, nullptr);
  ::evhttp_set_bevcb(
      http_, [](event_base*, void* self) { return static_cast<HttpSide*>(self)->add_connection(); }, this);
  ::evhttp_set_gencb(
      http_, [](evhttp_request* request, void* self) { static_cast<HttpSide*>(self)->on_request(request); },
      this);
  listener_ = ::evconnlistener_new(base_.get(), nullptr, nullptr,
                                   LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, socket.get());
  if (!listener_) return fail_libevent("a listener");
  (void)socket.release();
  if (!::evhttp_bind_listener(http_, listener_)) {
    ::evconnlistener_free(std::exchange(listener_, nullptr));
    return fail_libevent("a listener");
  }
  ::evconnlistener_set_error_cb(listener_, [](evconnlistener* listening, void*) {
    ::evconnlistener_disable(listening);
    const auto enable = [](evutil_socket_t, short, void* rested) {
      ::evconnlistener_enable(static_cast<evconnlistener*>(rested));
    };
    ::event_base_once(::evconnlistener_get_base(listening), -1, EV_TIMEOUT, enable, listening,
                      &kListenerRest);
  });
  return {};
}

HttpSide::~HttpSide() {
  // evhttp frees the requests of its connections, but not those whose connection has gone.
  for (const auto& [id, request] : waiting_)
    if (!::evhttp_request_get_connection(request)) ::evhttp_request_free(request);
  listener_ = nullptr;
  if (http_) ::evhttp_free(http_);
  while (!connections_.empty()) erase(connections_.begin()->second);  // those not admitted yet
}

void HttpSide::post_answer(HttpServer::Id id, HttpAnswer answer) {
  {
    const std::lock_guard lock(mutex_);
    answers_.push_back({id, std::move(answer)});
  }
  wake();
}

void HttpSide::post_stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  wake();
}

void HttpSide::wake() {
  const std::uint64_t one = 1;
  (void)retry_eintr([&] { return ::write(wake_.get(), &one, sizeof one); });
}

/// evhttp has accepted a connection, and asks for the stream on which it will put the descriptor. Only after that can
/// the other end be examined: in a turn that comes before the next read of any descriptor.
bufferevent* HttpSide::add_connection() {
  bufferevent* stream = ::bufferevent_socket_new(base_.get(), -1, BEV_OPT_CLOSE_ON_FREE);
  if (!stream) return nullptr;  // evhttp makes one, or fails likewise; on_request() does not know it
  Connection& connection = connections_[stream];
  connection.side = this;
  connection.stream = stream;
  ::bufferevent_incref(stream);
  // A line that does not end has no other limit in the middle of a body.
  ::bufferevent_setwatermark(stream, EV_READ, 0, limits_.header_bytes + limits_.body_bytes);
  connection.turn.reset(::event_new(
      base_.get(), -1, EV_TIMEOUT,
      [](evutil_socket_t, short, void* one) {
        auto& its_turn = *static_cast<Connection*>(one);
        its_turn.side->take_turn(its_turn);
      },
      &connection));
  if (connection.turn) ::event_active(connection.turn.get(), EV_TIMEOUT, 0);
  if (connections_.size() >= limits_.connections) ::evconnlistener_disable(listener_);
  return stream;
}

void HttpSide::take_turn(Connection& connection) {
  if (!connection.http) return admit(connection);
  ::evhttp_connection_free(connection.http);  // calls erase()
}

bool HttpSide::is_known(uid_t user) const {
  const auto& users = access_.users;
  return user == ::geteuid() || user == 0 || std::find(users.begin(), users.end(), user) != users.end();
}

void HttpSide::admit(Connection& connection) {
  // The argument of the callbacks that evhttp has set: nothing else leads from a stream to its connection. It is null
  // if evhttp could not begin, and has freed the stream.
  void* http = nullptr;
  ::bufferevent_getcb(connection.stream, nullptr, nullptr, nullptr, &http);
  if (!http) return erase(connection);
  connection.http = static_cast<evhttp_connection*>(http);
  DDL_CHECK(::evhttp_connection_get_bufferevent(connection.http) == connection.stream,
            "libevent has changed");
  ::evhttp_connection_set_closecb(
      connection.http,
      [](evhttp_connection*, void* one) {
        const auto& closed = *static_cast<Connection*>(one);
        closed.side->erase(closed);
      },
      &connection);
  const int socket = ::bufferevent_getfd(connection.stream);
  const auto user = net::user_of_peer(socket, lookup_);
  connection.needs_token = !user || !is_known(*user);
  if (!connection.needs_token || !access_.token.empty()) {
    const timeval limit = to_timeval(limits_.client_time);
    ::event_add(connection.turn.get(), &limit);
    return;
  }
  const std::string why = "this port serves only processes of user " + std::to_string(::geteuid()) +
                          " on this host, and of users that were named to it\n";
  const std::string answer =
      "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: " + std::to_string(why.size()) +
      "\r\n\r\n" + why;
  (void)::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::evhttp_connection_free(connection.http);
}

void HttpSide::erase(const Connection& connection) {
  bufferevent* stream = connection.stream;
  connections_.erase(stream);
  ::bufferevent_decref(stream);
  if (listener_ && connections_.size() < limits_.connections) ::evconnlistener_enable(listener_);
}

void HttpSide::on_request(evhttp_request* request) {
  bufferevent* stream = ::evhttp_connection_get_bufferevent(::evhttp_request_get_connection(request));
  const auto connection = connections_.find(stream);
  if (connection == connections_.end() || !connection->second.http)
    return ::evhttp_send_error(request, HTTP_INTERNAL, nullptr);
  if (connection->second.needs_token && !has_token(request, access_.token)) {
    evkeyvalq* headers = ::evhttp_request_get_output_headers(request);
    ::evhttp_add_header(headers, "WWW-Authenticate", "Bearer");
    ::evhttp_add_header(headers, "Connection", "close");
    return send(request, {kUnauthorized, "this port serves those who send its token\n", "text/plain"});
  }
  ::event_del(connection->second.turn.get());
  evbuffer* input = ::evhttp_request_get_input_buffer(request);
  HttpRequest read;
  read.method = method_name(::evhttp_request_get_command(request));
  read.path = ::evhttp_request_get_uri(request);
  read.accept = header(request, "Accept");
  read.body.resize(::evbuffer_get_length(input));
  ::evbuffer_remove(input, read.body.data(), read.body.size());
  const HttpServer::Id id = ++last_id_;
  waiting_[id] = request;
  deliver_(id, std::move(read));
}

void HttpSide::on_wake() {
  std::uint64_t count = 0;
  (void)retry_eintr([&] { return ::read(wake_.get(), &count, sizeof count); });
  std::vector<Answer> answers;
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) {
      ::event_base_loopbreak(base_.get());
      return;
    }
    answers.swap(answers_);
  }
  for (const Answer& answer : answers) reply(answer);
}

void HttpSide::reply(const Answer& answer) {
  const auto found = waiting_.find(answer.id);
  if (found == waiting_.end()) return;
  evhttp_request* request = found->second;
  waiting_.erase(found);
  if (!::evhttp_request_get_connection(request)) return ::evhttp_request_free(request);
  send(request, answer.answer);
}

void HttpSide::send(evhttp_request* request, const HttpAnswer& answer) {
  evkeyvalq* headers = ::evhttp_request_get_output_headers(request);
  if (!answer.type.empty()) ::evhttp_add_header(headers, "Content-Type", answer.type.c_str());
  // evhttp adds the length only for HTTP/1.1 and kept connections.
  ::evhttp_add_header(headers, "Content-Length", std::to_string(answer.body.size()).c_str());
  const EventObject<evbuffer> body(::evbuffer_new());
  if (body) ::evbuffer_add(body.get(), answer.body.data(), answer.body.size());
  bufferevent* stream = ::evhttp_connection_get_bufferevent(::evhttp_request_get_connection(request));
  ::evhttp_send_reply(request, answer.status, nullptr, body.get());
  // evhttp would read while it writes, and drop the answer at the end of what the client sends.
  ::bufferevent_disable(stream, EV_READ);
  const timeval limit = to_timeval(limits_.client_time);
  const auto connection = connections_.find(stream);
  if (connection != connections_.end()) ::event_add(connection->second.turn.get(), &limit);
}

struct HttpServer::Parts {
  std::shared_ptr<OnRequest> on_request;
  std::unique_ptr<HttpSide> side;
  std::thread thread;
};

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

HttpServer::~HttpServer() { pause(); }

void HttpServer::pause() {
  if (!parts_->thread.joinable()) return;
  parts_->side->post_stop();
  parts_->thread.join();
}

Status HttpServer::resume() {
  DDL_ASSIGN(thread, start_own_thread("ddl-http", [serving = parts_->side.get()] { serving->run(); }));
  parts_->thread = std::move(thread);
  return {};
}

Result<std::unique_ptr<HttpServer>> HttpServer::open(EventLoop& loop, OnRequest on_request,
                                                     const HttpLimits& limits, const HttpAccess& access) {
  auto parts = std::make_unique<Parts>();
  parts->on_request = std::make_shared<OnRequest>(std::move(on_request));
  auto side = HttpSide::make(
      limits, access,
      [&loop, weak = std::weak_ptr<OnRequest>(parts->on_request)](Id id, HttpRequest&& request) {
        loop.post([weak, id, request = std::move(request)]() mutable {
          // Kept here, because the server may end in the call.
          if (const auto handler = weak.lock()) (*handler)(id, std::move(request));
        });
      });
  if (!side) return fail(std::move(side.error()).during("opening an HTTP server"));
  parts->side = *std::move(side);
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(parts)));
  if (Status serves = server->resume(); !serves)
    return fail(std::move(serves.error()).during("opening an HTTP server"));
  return server;
}

const net::SocketAddress& HttpServer::address() const { return parts_->side->address(); }

void HttpServer::answer(Id id, HttpAnswer answer) { parts_->side->post_answer(id, std::move(answer)); }

}  // namespace ddl::launcher
