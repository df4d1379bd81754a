// A spawner under test; the test acts as its agent.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launcher/node/spawner.h"
#include "launcher/process/child.h"
#include "launcher/process/session_directory.h"
#include "launcher/protocol/codec.h"
#include "net/frame.h"
#include "support/processes.h"

namespace ddl::launcher::test {

using namespace ddl::test;

/// Starts a spawner; ends it and its descendants at the end of the test. The test's process is a subreaper, so that
/// the final check finds all of them.
class SpawnerHarness {
 public:
  SpawnerHarness() {
    become_subreaper();
    directory = new_session_directory_name().value();
    auto started = start_spawner(directory, open_files_limit());
    REQUIRE(started);
    pid_ = started->pid;
    channel_ = std::move(started->channel);
    null_ = UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    REQUIRE(null_);
  }
  ~SpawnerHarness() {
    channel_.reset();
    kill_descendants(soon());
    remove_session_directory(directory);
  }

  pid_t pid() const { return pid_; }

  void send(const message::AgentToSpawner& message, std::span<const int> fds = {}) {
    const net::Frame frame = message::encode(message);
    std::string bytes;
    net::append_frame(bytes, frame.type, frame.payload);
    send_raw(bytes, fds);
  }
  void send_raw(std::string_view bytes, std::span<const int> fds = {}) {
    REQUIRE(send_with_fds(channel_.get(), std::as_bytes(std::span(bytes)), fds));
  }

  /// Starts argv as a rank; its standard streams are out (an own pipe's end) or /dev/null.
  void spawn(int rank, std::vector<std::string> argv, int out = -1, int in = -1) {
    spawn(ChildSpec{rank, std::move(argv), {"PATH=/usr/bin:/bin"}, "/"}, out, in);
  }
  void spawn(const ChildSpec& child, int out = -1, int in = -1) {
    const int null = null_.get();
    send(message::Spawn{child}, std::vector<int>{in >= 0 ? in : null, out >= 0 ? out : null, null});
  }

  /// The next message; fails the test if none comes, or if it is another one.
  template <class Message>
  Message expect() {
    const auto message = receive();
    REQUIRE(message);
    CAPTURE(message->index());
    REQUIRE(std::holds_alternative<Message>(*message));
    return std::get<Message>(*message);
  }
  /// nullopt when the spawner has closed the channel.
  std::optional<message::SpawnerToAgent> receive() {
    const Deadline deadline = soon();
    for (;;) {
      auto frame = decoder_.next();
      REQUIRE(frame);
      if (*frame) {
        auto message = message::decode<message::SpawnerToAgent>(**frame);
        REQUIRE(message);
        return *message;
      }
      pollfd entry{channel_.get(), POLLIN, 0};
      REQUIRE(retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) == 1);
      std::array<std::byte, 4096> buffer;
      auto received = receive_with_fds(channel_.get(), buffer);
      if (!received || received->size == 0) return std::nullopt;
      decoder_.append(std::span(buffer).first(received->size));
    }
  }

  /// Spawns a rank that lives until it is killed, and waits until it runs; its pid.
  pid_t spawn_sleeper(int rank) {
    spawn(rank, {"sleep", "100"});
    return static_cast<pid_t>(expect<message::ChildStarted>().pid);
  }

  /// Has the effect of the agent's death for the spawner.
  void close_channel() { channel_.reset(); }
  /// Waits for the spawner's own end; its wait status.
  int wait_for_end() {
    const auto pidfd = open_pidfd(pid_);
    REQUIRE(pidfd);
    REQUIRE(ends_soon(*pidfd));
    return reap(pid_);
  }

  std::string directory;

 private:
  pid_t pid_ = 0;
  UniqueFd channel_;
  UniqueFd null_;
  net::FrameDecoder decoder_;
};

}  // namespace ddl::launcher::test
