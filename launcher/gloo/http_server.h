// A server of HTTP/1.1 for the processes of the job's own user on this host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "launcher/loop/event_loop.h"

namespace ddl::launcher {

struct HttpRequest {
  std::string method;  ///< GET, PUT or DELETE
  std::string path;    ///< as in the first line of the request, not decoded
  std::string body;
};

struct HttpLimits {
  std::size_t header_bytes = std::size_t{8} << 10;  ///< and of the request's first line
  std::size_t body_bytes = std::size_t{2} << 20;
  /// More wait in the kernel's queue until one of these ends.
  std::size_t connections = 256;
  /// From the start of a connection, or from the last answer on it, until the next request is complete.
  std::chrono::milliseconds client_time = std::chrono::seconds(10);
};

/// Listens on 127.0.0.1, at a port that the kernel chooses, and serves processes of the same user and of root; others
/// get 403 before anything that they send is read. A client that is slow, silent or hostile costs one connection for
/// client_time. libevent parses requests and writes answers, on a thread that lives as long as the server; all calls
/// here are made on the loop's thread.
class HttpServer {
 public:
  using Id = std::int64_t;  ///< of a request; never the same number twice
  using OnRequest = std::function<void(Id id, HttpRequest&& request)>;

  /// on_request is called from the loop. Each request waits, however long, until it is answered; meanwhile nothing is
  /// read from its connection. Error kUnavailable: the kernel does not say to whom connections belong.
  static Result<std::unique_ptr<HttpServer>> open(EventLoop& loop, OnRequest on_request,
                                                  const HttpLimits& limits = {});
  /// Ends the thread, and closes all connections at once, also in the middle of an answer. May be called in
  /// on_request, which is not called again.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  /// Once for each request. Every answer has a Content-Length. Does nothing if the client has gone.
  void answer(Id id, int status, std::string body);

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace ddl::launcher
