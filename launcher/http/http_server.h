// A server of HTTP/1.1 that serves processes of certain users on this host, and requests with a secret token.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "launcher/loop/event_loop.h"
#include "net/address.h"

namespace ddl::launcher {

struct HttpRequest {
  std::string method;  ///< GET, PUT or DELETE
  std::string path;    ///< as in the first line of the request, not decoded
  std::string accept;  ///< the header, "" without it
  std::string body;
};

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type;  ///< of the body; "": it is not said
};

/// Where a server listens, and whom it serves.
struct HttpAccess {
  net::SocketAddress address = net::SocketAddress::loopback();  ///< port 0: one that the kernel chooses
  std::vector<uid_t> users;  ///< of processes of this host, beside this process's user and root
  /// Requests of others are served if they have the header "Authorization: Bearer TOKEN". "": none is.
  std::string token;
};

struct HttpLimits {
  std::size_t header_bytes = std::size_t{8} << 10;  ///< and of the request's first line
  std::size_t body_bytes = std::size_t{2} << 20;
  /// More wait in the kernel's queue until one of these ends.
  std::size_t connections = 256;
  /// From the start of a connection, or from the last answer on it, until the next request is complete.
  std::chrono::milliseconds client_time = std::chrono::seconds(10);
};

/// Others than those that are to be served get 403 before anything that they send is read, or, if there is a token, 401
/// for a request without it; then the connection ends. A client that is slow, silent or hostile costs one connection for client_time. libevent
/// parses requests and writes answers, on a thread that lives as long as the server; all calls here are made on the
/// loop's thread.
class HttpServer {
 public:
  using Id = std::int64_t;  ///< of a request; never the same number twice
  using OnRequest = std::function<void(Id id, HttpRequest&& request)>;

  /// on_request is called from the loop. Each request waits, however long, until it is answered; meanwhile nothing is
  /// read from its connection. Errors: the address cannot be had; kUnavailable: the kernel does not say to whom
  /// connections belong.
  static Result<std::unique_ptr<HttpServer>> open(EventLoop& loop, OnRequest on_request,
                                                  const HttpLimits& limits = {},
                                                  const HttpAccess& access = {});
  /// Ends the thread, and closes all connections at once, also in the middle of an answer. May be called in
  /// on_request, which is not called again.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// With the port that it has.
  const net::SocketAddress& address() const;
  /// From now until resume() the server has no thread, so that the process can fork. Clients wait.
  void pause();
  /// Error: there is no thread; all connections are closed then.
  Status resume();
  /// Once for each request. Every answer has a Content-Length. Does nothing if the client has gone.
  void answer(Id id, HttpAnswer answer);

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace ddl::launcher
