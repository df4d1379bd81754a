// Answers those who ask a running job from a shell of its host: the listening socket of a head or of an agent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "launcher/control/job_socket.h"
#include "launcher/loop/event_loop.h"
#include "launcher/protocol/control_messages.h"
#include "launcher/protocol/link.h"

namespace ddl::launcher {

/// Accepts clients of the same user and of root; all others get a sentence. A client sends one request. It is dropped
/// if it sends anything else, and in any case after client_time: a client that is slow, silent or hostile costs memory
/// for one answer and never blocks the loop. One thread.
class JobServer {
 public:
  static constexpr std::size_t kMaxClients = 8;
  static constexpr auto kClientTime = std::chrono::seconds(5);
  /// Of one frame from a client: a request has no more than a name and a version.
  static constexpr std::size_t kMaxRequestBytes = 4096;

  using Client = std::int64_t;  ///< never the same number twice
  using OnRequest = std::function<void(Client client, message::ClientToJob&& request)>;

  /// The socket exists as long as the server. on_request is called from the loop. Error: the name is taken, or there
  /// are no descriptors left.
  static Result<std::unique_ptr<JobServer>> open(EventLoop& loop, const JobSocket& socket,
                                                 OnRequest on_request,
                                                 std::chrono::milliseconds client_time = kClientTime);

  /// Queues one message for the client. Does nothing if it has gone.
  void answer(Client client, const message::JobToClient& message);
  /// The same with a message that is encoded.
  void answer(Client client, const net::Frame& frame);

 private:
  struct Connection {
    std::unique_ptr<Link> link;
    EventLoop::Timer limit;
    bool has_asked = false;
  };
  JobServer(EventLoop& loop, UniqueFd socket, OnRequest on_request, std::chrono::milliseconds client_time);
  void on_connection();
  void on_frame(Client client, const net::Frame& frame);
  /// From the loop, also if it is at once: the link may be at work.
  void drop_after(Client client, std::chrono::steady_clock::duration delay);

  EventLoop& loop_;
  UniqueFd socket_;
  OnRequest on_request_;
  std::chrono::milliseconds client_time_;
  EventLoop::FdWatch watch_;
  EventLoop::Timer rest_;
  Client last_client_ = 0;
  std::map<Client, Connection> connections_;
};

}  // namespace ddl::launcher
