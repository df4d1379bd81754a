// A launch's connection to the elastic job that it belongs to.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  MemberChannel(UniqueFd socket, std::string job_id, net::JobKey key)
      : socket_(std::move(socket)), job_id_(std::move(job_id)), key_(std::move(key)) {}

  const std::string& job_id() const { return job_id_; }
  const net::JobKey& key() const { return key_; }

  /// While the loop runs: passes on signals. on_signal(SIGTERM), too, if the job has ended.
  Status open(EventLoop& loop, std::function<void(int signal)> on_signal);
  /// The other orders, also those that came before.
  void deliver(std::function<void(const message::MemberOrder&)> on_order);
  void report(const message::MemberReport& report);
  /// Before the loop is destroyed.
  void close();
  /// The last report, after close(). Blocks until it is sent, for a moment at most.
  void conclude(const message::LaunchEnded& end);

 private:
  void take(const message::MemberOrder& order);

  UniqueFd socket_;
  std::string job_id_;
  net::JobKey key_;
  std::function<void(int)> on_signal_;
  std::function<void(const message::MemberOrder&)> on_order_;
  std::vector<message::MemberOrder> early_;  ///< until there is on_order_
  std::unique_ptr<Link> link_;
};

}  // namespace ddl::launcher
