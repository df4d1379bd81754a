// A launch's connection to the elastic job that it belongs to.
#pragma once

#include <functional>
#include <memory>

#include "base/fd.h"
#include "launcher/loop/event_loop.h"
#include "launcher/protocol/link.h"
#include "launcher/protocol/member_messages.h"
#include "net/job_key.h"

namespace ddl::launcher {

/// The launch's end. One thread.
class MemberChannel {
 public:
  /// socket: of a pair, whose other end the job has. key: of the job, with which the ranks of all its launches connect.
  MemberChannel(UniqueFd socket, net::JobKey key) : socket_(std::move(socket)), key_(std::move(key)) {}

  const net::JobKey& key() const { return key_; }

  /// While the loop runs: delivers orders. on_closed: the job has ended, and so must the launch.
  Status open(EventLoop& loop, std::function<void(const message::MemberOrder&)> on_order,
              const std::function<void()>& on_closed);
  void report(const message::MemberReport& report);
  /// Before the loop is destroyed.
  void close();
  /// The last report, after close(). Blocks until it is sent, for a moment at most.
  void conclude(const message::LaunchEnded& end);

 private:
  UniqueFd socket_;
  net::JobKey key_;
  std::unique_ptr<Link> link_;
};

}  // namespace ddl::launcher
