#include "launcher/fleet/agent_groups.h"

#include <cctype>
#include <numeric>
#include <span>
#include <utility>

#include "base/text.h"
#include "launcher/fleet/piped_child.h"
#include "launcher/protocol/codec.h"
#include "launcher/protocol/link.h"
#include "net/job_key.h"

namespace ddl::launcher {

Crew::Crew(EventLoop& loop, StartedCrew started, std::function<void(StartFailure)> on_over)
    : in_(std::move(started.in)),
      out_(std::move(started.out)),
      errors_(std::move(started.errors)),
      process_(std::move(started.process)) {
  errors_.begin(loop);
  out_.begin(loop, [this, on_over = std::move(on_over)] {
    errors_.catch_up();
    on_over(process_->why_not_started(out_.text(), errors_.text()));
  });
}

void Crew::tell(const message::Join& join) {
  if (!in_) return;
  net::Frame frame = message::encode<message::HeadToJoiningAgent>(join);
  std::string bytes;
  net::append_frame(bytes, frame.type, frame.payload);
  // Far less than a pipe holds.
  (void)write_all(in_.get(), bytes.data(), bytes.size());
  net::wipe(std::as_writable_bytes(std::span(bytes)));
  net::wipe(std::as_writable_bytes(std::span(frame.payload)));
  // It stays open: of a task that comes late srun may drop what it has for it when the input ends.
}

std::string Crew::said_by(const std::string& node) const {
  const std::string beginning = "ddlrun agent on " + node + ": ";
  std::string_view about_it;
  for (const std::string_view line : split(errors_.text(), '\n')) {
    if (const std::size_t at = line.find(beginning); at != std::string_view::npos)
      return telling_lines(line.substr(at + beginning.size()));
    const std::size_t at = line.find(node);
    const bool is_name = at != std::string_view::npos &&
                         (at + node.size() == line.size() ||
                          std::isalnum(static_cast<unsigned char>(line[at + node.size()])) == 0);
    if (is_name && line.find("error") != std::string_view::npos) about_it = line;
  }
  return telling_lines(about_it);
}

void Crew::close() {
  in_.reset();
  out_.stop();
  errors_.stop();
}

Result<std::unique_ptr<Crews>> Crews::make(EventLoop& loop, CrewStarter& starter) {
  auto key = net::JobKey::random();
  if (!key) return fail(std::move(key.error()));
  auto nonce = make_nonce();
  if (!nonce) return fail(std::move(nonce.error()));
  return std::unique_ptr<Crews>(new Crews(loop, starter, *std::move(key), *std::move(nonce)));
}

void Crews::start(const std::vector<AllocatedNode>& nodes, const OnFailed& on_failed) {
  auto started = starter_.start(nodes, nonce_);
  if (!started) {
    std::vector<std::size_t> all(nodes.size());
    std::iota(all.begin(), all.end(), 0);
    loop_.post([all, on_failed, why = StartFailure{started.error().message()}] { on_failed(all, why); });
    return;
  }
  for (StartedCrew& crew : *started) {
    auto on_over = [on_failed, positions = crew.nodes](const StartFailure& why) {
      on_failed(positions, why);
    };
    crews_.push_back(std::make_unique<Crew>(loop_, std::move(crew), std::move(on_over)));
  }
}

void Crews::tell_gatherer(message::StartAgents& branch) const {
  branch.key = key_.to_hex();
  branch.nonce = nonce_;
}

void Crews::join(const message::RendezvousReady& rendezvous, const NodeFacts& gatherer) {
  message::Join join{{}, rendezvous.port, key_.to_hex()};
  // What its name means here is what the others most likely reach.
  if (!gatherer.master_address.empty()) join.addresses.push_back(gatherer.master_address);
  for (const NodeAddress& address : gatherer.addresses) {
    if (address.address != gatherer.master_address) join.addresses.push_back(address.address);
  }
  for (auto& crew : crews_) crew->tell(join);
}

std::string Crews::said_by(const std::string& node) const {
  for (const auto& crew : crews_) {
    if (std::string said = crew->said_by(node); !said.empty()) return said;
  }
  return "";
}

void Crews::shut_down(Deadline deadline) {
  for (auto& crew : crews_) crew->close();
  for (auto& crew : crews_) crew->clean_up(deadline);
}

}  // namespace ddl::launcher
