#include "launcher/head/member_channel.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include <csignal>
#include <utility>

#include "launcher/protocol/codec.h"

namespace ddl::launcher {

Status MemberChannel::open(EventLoop& loop, std::function<void(int signal)> on_signal) {
  UniqueFd socket(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
  if (!socket) return fail_errno("fcntl F_DUPFD_CLOEXEC");
  link_ = make_stream_link(loop, std::move(socket));
  // What the job sends is of this process's own code: a frame that cannot be read is a defect, and ends the launch.
  on_signal_ = std::move(on_signal);
  // From here on the end of the connection tells that the job has ended.
  ::prctl(PR_SET_PDEATHSIG, 0);
  link_->start({[this](const net::Frame& frame) {
                  const auto order = message::decode<message::MemberOrder>(frame);
                  order ? take(*order) : on_signal_(SIGTERM);
                },
                [this](const std::string&) { on_signal_(SIGTERM); }});
  return {};
}

void MemberChannel::take(const message::MemberOrder& order) {
  if (const auto* const signal = std::get_if<message::Signal>(&order)) return on_signal_(signal->signal);
  on_order_ ? on_order_(order) : early_.push_back(order);
}

void MemberChannel::deliver(std::function<void(const message::MemberOrder&)> on_order) {
  on_order_ = std::move(on_order);
  for (const message::MemberOrder& order : std::exchange(early_, {})) on_order_(order);
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
