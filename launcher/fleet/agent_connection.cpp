#include "launcher/fleet/agent_connection.h"

#include <unistd.h>

#include <array>
#include <csignal>

#include "contract/version.h"
#include "launcher/fleet/stream_tail.h"
#include "launcher/protocol/codec.h"
#include "launcher/protocol/link.h"

namespace ddl::launcher {
namespace {

std::int64_t bytes_of(const net::Frame& frame) {
  return static_cast<std::int64_t>(net::kFrameHeaderSize + frame.payload.size());
}

}  // namespace

AgentConnection::AgentConnection(EventLoop& loop, StartedAgent started)
    : loop_(loop),
      process_(std::move(started.process)),
      read_(std::move(started.read)),
      write_(std::move(started.write)),
      errors_(std::move(started.errors)),
      pace_(started.child > 0 ? kLocalPace : kRemotePace),
      heartbeat_(loop, pace_,
                 {[this] { send(message::encode<message::HeadToAgent>(message::Heartbeat{})); },
                  [this] {
                    is_silent_ = true;
                    lose("nothing has been heard from its agent for " + silence_text(pace_) +
                         ": the host is down or cut off, or the agent is stopped");
                  }}),
      child_(started.child) {
  if (child_ > 0) child_watch_.emplace(child_);
  if (!started.nonce.empty()) greeting_.emplace(std::move(started.nonce));
}

void AgentConnection::begin(Handlers handlers) {
  handlers_ = std::move(handlers);
  errors_.begin(loop_);
  if (!greeting_) return open_link({});
  (void)set_nonblocking(read_.get(), true);
  greeting_watch_ = loop_.watch(read_.get(), [this] { on_greeting_bytes(); });
}

void AgentConnection::on_greeting_bytes() {
  std::array<char, 16384> buffer;
  const ssize_t got = retry_eintr([&] { return ::read(read_.get(), buffer.data(), buffer.size()); });
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) {
    errors_.read_available();
    return fail(process_->why_not_started(greeting_->noise(), errors_.text()));
  }
  switch (greeting_->take({buffer.data(), static_cast<std::size_t>(got)})) {
    case GreetingScanner::State::kLooking: return;
    case GreetingScanner::State::kTooMuchNoise:
      return fail({ErrorCode::kProtocol,
                   "its login shell has written " + std::to_string(GreetingScanner::kMaxNoise >> 10) +
                       " KiB where ddlrun's answer was expected; its start-up files must print nothing in "
                       "non-interactive shells (the text begins: " +
                       last_error_lines(greeting_->noise().substr(0, 60)) + ")"});
    case GreetingScanner::State::kFound: break;
  }
  if (greeting_->version() != contract::kVersion) {
    return fail(
        {ErrorCode::kUnavailable, "ddlrun there is version " + greeting_->version() + ", and this one is " +
                                      contract::kVersion +
                                      "; install the same one there, or give its path with --remote-path"});
  }
  greeting_watch_.reset();
  greeted_at_ = std::chrono::steady_clock::now();
  open_link(greeting_->rest());
}

void AgentConnection::open_link(std::string_view first_bytes) {
  link_ = make_stream_link(loop_, std::move(read_), std::move(write_), first_bytes);
  link_->start({[this](net::Frame&& frame) { on_frame(std::move(frame)); },
                [this](const std::string& reason) { on_closed(reason); }});
}

void AgentConnection::on_frame(net::Frame&& frame) {
  if (over_) return;
  // Until it knows its node, which may take long, an agent is silent: Fleet has a limit for that.
  if (!has_received_) heartbeat_.start();
  heartbeat_.heard();
  received_bytes_ += bytes_of(frame);
  if (const Status accepted = handlers_.on_frame(std::move(frame)); !accepted)
    return lose("its agent sent " + accepted.error().message());
  // The handler may have refused the facts of the agent.
  if (!over_) has_received_ = true;
}

void AgentConnection::on_closed(const std::string& reason) {
  if (over_) return;
  if (expects_end_) return stop_listening();
  errors_.read_available();
  if (!has_received_) return fail(process_->why_not_started({}, errors_.text()));
  const std::string how = process_->how_it_ended() + " (its link: " + reason + ")";
  errors_.read_available();  // its spawner may have written why it ended
  const std::string errors = last_error_lines(errors_.text());
  lose(how + (errors.empty() ? "" : "; it wrote: " + errors));
}

void AgentConnection::send(const net::Frame& frame) {
  if (!link_ || over_) return;
  sent_bytes_ += bytes_of(frame);
  link_->send(frame.type, frame.payload);
}

void AgentConnection::check_child() {
  if (!child_watch_ || over_ || check_timer_.is_pending()) return;
  if (child_watch_->is_stopped_for_good()) {
    // Its spawner notices that, and ends the ranks after a grace period.
    ::kill(child_, SIGKILL);
    return lose("the agent (process " + std::to_string(child_) + ") was stopped, and was killed");
  }
  if (child_watch_->was_stopped())
    check_timer_ = loop_.after(child_watch_->pause(), [this] { check_child(); });
}

void AgentConnection::flush() {
  if (link_ && !over_) link_->flush();
}

void AgentConnection::clean_up(Deadline deadline) {
  // An agent that is silent or never answered will not end in order: its process here is killed at once.
  process_->clean_up(is_silent_ || !has_received_ ? Deadline::after({}) : deadline);
}

void AgentConnection::fail(const Error& why) {
  if (over_) return;
  stop_listening();
  handlers_.on_failed(why);
}

void AgentConnection::lose(const std::string& how) {
  if (over_) return;
  if (!has_received_) return fail({ErrorCode::kClosed, how});
  stop_listening();
  handlers_.on_lost(how);
}

void AgentConnection::stop_listening() {
  over_ = true;
  heartbeat_.stop();
  check_timer_.cancel();
  greeting_watch_.reset();
}

void AgentConnection::close() {
  stop_listening();
  errors_.stop();
  link_.reset();
  read_.reset();
  write_.reset();
}

}  // namespace ddl::launcher
