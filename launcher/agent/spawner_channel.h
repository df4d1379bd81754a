// The agent's end of the connection to its spawner.
#pragma once

#include <functional>
#include <span>

#include "launcher/loop/event_loop.h"
#include "launcher/message/message.h"
#include "launcher/spawner/spawner.h"
#include "net/frame.h"

namespace ddl::launcher {

/// Sends commands, with descriptors beside Spawn, and delivers what the spawner says. Lives on the loop's thread.
class SpawnerChannel {
 public:
  struct Handlers {
    std::function<void(const message::Any&)> on_message;
    std::function<void()> on_lost;  ///< the channel closed; called once
  };
  SpawnerChannel(EventLoop& loop, SpawnerProcess process) : loop_(loop), process_(std::move(process)) {}

  void start(Handlers handlers);
  /// Blocks at most as long as the spawner is busy starting a process. Nothing happens once it is lost.
  void send(const message::Any& message) { send(message, {}); }
  /// The descriptors stay the caller's.
  void spawn(const ChildSpec& child, std::span<const int> fds) { send(message::Spawn{child}, fds); }
  pid_t pid() const { return process_.pid; }
  /// It is stopped: kills it, and on_lost follows.
  void kill();
  /// After on_lost: "was killed by SIGKILL". Reaps it.
  std::string how_it_ended();

 private:
  void send(const message::Any& message, std::span<const int> fds);
  void on_readable();
  void lose();

  EventLoop& loop_;
  SpawnerProcess process_;
  Handlers handlers_;
  net::FrameDecoder decoder_;
  EventLoop::FdWatch watch_;
  bool lost_ = false;
};

}  // namespace ddl::launcher
