#include "launcher/head/member_channel.h"

#include <fcntl.h>

#include <utility>

#include "launcher/protocol/codec.h"

namespace ddl::launcher {

Status MemberChannel::open(EventLoop& loop, std::function<void(const message::MemberOrder&)> on_order,
                           const std::function<void()>& on_closed) {
  UniqueFd socket(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
  if (!socket) return fail_errno("fcntl F_DUPFD_CLOEXEC");
  link_ = make_stream_link(loop, std::move(socket));
  // What the job sends is of this process's own code: a frame that cannot be read is a defect, and ends the launch.
  link_->start({[on_order = std::move(on_order), on_closed](const net::Frame& frame) {
                  const auto order = message::decode<message::MemberOrder>(frame);
                  order ? on_order(*order) : on_closed();
                },
                [on_closed](const std::string&) { on_closed(); }});
  return {};
}

void MemberChannel::report(const message::MemberReport& report) {
  if (link_) message::send(*link_, report);
}

void MemberChannel::close() {
  if (link_) link_->flush();
  link_.reset();
}

void MemberChannel::conclude(const message::LaunchEnded& end) {
  EventLoop loop;
  const auto link = make_stream_link(loop, std::move(socket_));
  message::send<message::MemberReport>(*link, end);
  link->flush();
}

}  // namespace ddl::launcher
