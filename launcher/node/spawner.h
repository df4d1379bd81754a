// The process that starts the ranks of one node and, if the agent dies, ends them; and the agent's connection to it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <span>
#include <string>

#include "base/fd.h"
#include "launcher/loop/event_loop.h"
#include "launcher/process/process_state.h"
#include "launcher/protocol/spawner_messages.h"
#include "net/frame.h"

namespace ddl::launcher {

/// The spawner as its agent sees it.
struct SpawnerProcess {
  pid_t pid = 0;
  UniqueFd channel;  ///< the agent's end: frames of spawner_messages.h, with descriptors beside Spawn
};

/// Forks the spawner. The calling process must have one thread and be a subreaper. The spawner makes
/// session_directory, and removes it when the agent has ended. children_open_files: the limit of open files that children get
/// back. agent_is_watched: the agent's parent notices by SIGCHLD if the agent is stopped, so that the spawner needs
/// to check it only rarely.
Result<SpawnerProcess> start_spawner(const std::string& session_directory, const rlimit& children_open_files,
                                     bool agent_is_watched = false);

/// The agent's end of the connection to its spawner: sends commands, and descriptors with each Spawn, and delivers
/// the spawner's reports. Lives on the loop's thread.
class SpawnerChannel {
 public:
  struct Handlers {
    std::function<void(const message::SpawnerToAgent&)> on_message;
    std::function<void()> on_lost;  ///< the channel closed; called once
  };
  SpawnerChannel(EventLoop& loop, SpawnerProcess process) : loop_(loop), process_(std::move(process)) {}

  void start(Handlers handlers);
  /// Blocks at most as long as the spawner is busy starting a process. Does nothing once the channel is lost.
  void send(const message::AgentToSpawner& message) { send(message, {}); }
  /// The caller keeps the descriptors and closes them.
  void spawn(const ChildSpec& child, std::span<const int> fds) { send(message::Spawn{child}, fds); }
  pid_t pid() const { return process_.pid; }
  /// Kills it if it stays stopped, and on_lost follows. Returns the time until the next check.
  std::chrono::milliseconds check();
  /// After on_lost: "was killed by SIGKILL", or "was stopped, and was killed". Reaps it.
  std::string how_it_ended();

 private:
  void send(const message::AgentToSpawner& message, std::span<const int> fds);
  void on_readable();
  void refuse(const Error& error);
  /// why: as in "was stopped".
  void kill(std::string why);
  void lose();

  EventLoop& loop_;
  SpawnerProcess process_;
  StoppedWatch stopped_watch_{process_.pid};
  Handlers handlers_;
  net::FrameDecoder decoder_;
  EventLoop::FdWatch watch_;
  bool lost_ = false;
  std::string killed_because_;
};

}  // namespace ddl::launcher
