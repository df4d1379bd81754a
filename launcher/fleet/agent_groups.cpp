#include "launcher/fleet/agent_groups.h"

#include <cctype>
#include <numeric>
#include <span>
#include <utility>

#include "base/text.h"
#include "launcher/fleet/stream_tail.h"
#include "launcher/protocol/codec.h"
#include "launcher/protocol/link.h"
#include "net/job_key.h"

namespace ddl::launcher {

AgentGroup::AgentGroup(EventLoop& loop, StartedAgentGroup started, std::function<void(const Error&)> on_ended)
    : in_(std::move(started.in)),
      out_(std::move(started.out)),
      errors_(std::move(started.errors)),
      process_(std::move(started.process)) {
  errors_.begin(loop);
  out_.begin(loop, [this, on_ended = std::move(on_ended)] {
    errors_.read_available();
    on_ended(process_->why_not_started(out_.text(), errors_.text()));
  });
}

void AgentGroup::send_join(const message::Join& join) {
  if (!in_) return;
  net::Frame frame = message::encode<message::HeadToJoiningAgent>(join);
  std::string bytes;
  net::append_frame(bytes, frame.type, frame.payload);
  // It does not block: the message is far smaller than the pipe's buffer.
  (void)write_all(in_.get(), bytes.data(), bytes.size());
  net::wipe(std::as_writable_bytes(std::span(bytes)));
  net::wipe(std::as_writable_bytes(std::span(frame.payload)));
  // The input stays open: at its end, srun may drop the data that it still holds for a task that starts late.
}

std::string AgentGroup::error_of(const std::string& node) const {
  const std::string beginning = "ddlrun agent on " + node + ": ";
  std::string_view about_it;
  for (const std::string_view line : split(errors_.text(), '\n')) {
    if (const std::size_t at = line.find(beginning); at != std::string_view::npos)
      return last_error_lines(line.substr(at + beginning.size()));
    const std::size_t at = line.find(node);
    const bool is_name = at != std::string_view::npos &&
                         (at + node.size() == line.size() ||
                          std::isalnum(static_cast<unsigned char>(line[at + node.size()])) == 0);
    if (is_name && line.find("error") != std::string_view::npos) about_it = line;
  }
  return last_error_lines(about_it);
}

void AgentGroup::close() {
  in_.reset();
  out_.stop();
  errors_.stop();
}

Result<std::unique_ptr<AgentGroups>> AgentGroups::make(EventLoop& loop, AgentGroupStarter& starter) {
  DDL_ASSIGN(key, net::JobKey::random());
  DDL_ASSIGN(nonce, make_nonce());
  return std::unique_ptr<AgentGroups>(new AgentGroups(loop, starter, std::move(key), std::move(nonce)));
}

void AgentGroups::start(const std::vector<AllocatedNode>& nodes, const OnFailed& on_failed) {
  auto started = starter_.start(nodes, nonce_);
  if (!started) {
    std::vector<int> all(nodes.size());
    std::iota(all.begin(), all.end(), 0);
    loop_.post([all, on_failed, why = started.error()] { on_failed(all, why); });
    return;
  }
  for (StartedAgentGroup& group : *started) {
    auto on_ended = [on_failed, positions = group.nodes](const Error& why) { on_failed(positions, why); };
    groups_.push_back(std::make_unique<AgentGroup>(loop_, std::move(group), std::move(on_ended)));
  }
}

void AgentGroups::describe_rendezvous(message::StartAgents& branch) const {
  branch.key = key_.to_hex();
  branch.nonce = nonce_;
}

void AgentGroups::join(const message::RendezvousReady& rendezvous, const NodeFacts& host) {
  if (std::exchange(has_sent_join_, true)) return;
  message::Join join{{}, rendezvous.port, key_.to_hex()};
  // The first address is the loopback, for an agent on the same host; on other hosts nothing listens there.
  if (!host.master_address.empty()) join.addresses.push_back(host.master_address);
  for (const NodeAddress& address : host.addresses) {
    if (address.address != host.master_address) join.addresses.push_back(address.address);
  }
  for (auto& group : groups_) group->send_join(join);
}

std::string AgentGroups::error_of(const std::string& node) const {
  for (const auto& group : groups_) {
    if (std::string error = group->error_of(node); !error.empty()) return error;
  }
  return "";
}

void AgentGroups::shut_down(Deadline deadline) {
  for (auto& group : groups_) group->close();
  for (auto& group : groups_) group->clean_up(deadline);
}

}  // namespace ddl::launcher
