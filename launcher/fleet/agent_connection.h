// One agent, from its start to its end: greeting, link, heartbeat, standard error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/fleet/node_starter.h"
#include "launcher/fleet/stream_tail.h"
#include "launcher/loop/event_loop.h"
#include "launcher/process/process_state.h"
#include "launcher/protocol/heartbeat.h"
#include "launcher/protocol/link.h"
#include "net/frame.h"

namespace ddl::launcher {

/// Handlers run on the loop's thread, never from inside begin() or send(); at most one of on_failed and
/// on_lost is ever called, once, and nothing after it.
class AgentConnection {
 public:
  struct Handlers {
    std::function<Status(net::Frame&&)> on_frame;  ///< an error states what the agent sent, and ends the link
    std::function<void(const Error&)> on_failed;   ///< the link ended before a first message was accepted
    std::function<void(const std::string& how)> on_lost;  ///< later: one sentence without the node's name
  };
  AgentConnection(EventLoop& loop, StartedAgent started);

  /// From now on the handlers are called.
  void begin(Handlers handlers);

  void send(const net::Frame& frame);
  /// Blocks until what was sent has left, for a moment at most.
  void flush();
  /// To be called when a child of this process may have been stopped or continued: checks whether it was this agent.
  void check_child();
  /// The agent has sent Finished: its link may close now.
  void expect_end() { expects_end_ = true; }
  /// No handler is called from here on.
  void stop_listening();
  /// Closes the link: an agent that is alive ends itself then.
  void close();
  void clean_up(Deadline deadline);
  /// When its greeting was read; nullopt until then, and where none is expected.
  std::optional<std::chrono::steady_clock::time_point> greeted_at() const { return greeted_at_; }
  /// In frames, with their headers.
  std::int64_t sent_bytes() const { return sent_bytes_; }
  std::int64_t received_bytes() const { return received_bytes_; }
  /// The end of what it wrote on standard error; "" if it writes to the head's own.
  const std::string& errors() const { return errors_.text(); }

 private:
  void on_greeting_bytes();
  void open_link(std::string_view first_bytes);
  void on_frame(net::Frame&& frame);
  void on_closed(const std::string& reason);
  void fail(const Error& why);
  void lose(const std::string& how);

  EventLoop& loop_;
  Handlers handlers_;
  std::unique_ptr<AgentProcess> process_;
  UniqueFd read_;  // until the greeting has come; then the link's
  UniqueFd write_;
  StreamTail errors_;
  std::optional<GreetingScanner> greeting_;
  std::unique_ptr<Link> link_;
  const HeartbeatPace pace_;
  Heartbeat heartbeat_;
  const pid_t child_;
  std::optional<StoppedWatch> child_watch_;
  EventLoop::Timer check_timer_;
  EventLoop::FdWatch greeting_watch_;
  std::optional<std::chrono::steady_clock::time_point> greeted_at_;
  std::int64_t sent_bytes_ = 0;
  std::int64_t received_bytes_ = 0;
  bool is_silent_ = false;
  bool has_received_ = false;
  bool expects_end_ = false;
  bool over_ = false;
};

}  // namespace ddl::launcher
