#include "launcher/elastic/membership_watch.h"

#include <sys/wait.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/files.h"
#include "base/printable_text.h"
#include "base/text.h"

namespace ddl::launcher {
namespace {

// Beyond the time that the agent itself has.
constexpr std::chrono::seconds kBeyondStart{30};
constexpr std::chrono::seconds kRetry{1};
constexpr std::size_t kMaxOutput = std::size_t{1} << 20;

std::string quoted(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_quote(word));
  return join(quoted, " ");
}

/// Of --check-hosts: "node3  failed: why".
std::string failure_of(const CommandOutput& output) {
  constexpr std::string_view kFailed = "failed: ";
  std::string_view text = output.out;
  if (const auto at = text.find(kFailed); at != std::string_view::npos) {
    text.remove_prefix(at + kFailed.size());
  } else {
    text = output.err;
  }
  return printable_line(trim(text.substr(0, text.find('\n'))));
}

}  // namespace

std::vector<std::string> check_command(const JobSpec& spec, const AllocatedNode& host,
                                       const std::string& own_path) {
  const bool is_ipv6 = host.name.find(':') != std::string::npos;
  std::vector<std::string> words = {
      own_path, "--check-hosts", "--quiet", "-H",
      (host.user ? *host.user + "@" : "") + (is_ipv6 ? "[" + host.name + "]" : host.name)};
  const auto add = [&words](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  const SshSettings& ssh = spec.ssh;
  if (const int port = host.port.value_or(ssh.port); port > 0) add("--ssh-port", std::to_string(port));
  add("--ssh-identity-file", ssh.identity_file);
  add("--ssh-args", quoted(ssh.args));
  add("--launch-agent", quoted(ssh.launch_agent));
  add("--remote-path", ssh.remote_path);
  add("--start-timeout", std::to_string(ssh.start_timeout_seconds.value));
  if (spec.launcher == LauncherChoice::kSsh) add("--launcher", "ssh");
  if (spec.launcher == LauncherChoice::kLocal) add("--launcher", "local");
  return words;
}

MembershipWatch::MembershipWatch(EventLoop& loop, GenerationPlanner& planner, const JobSpec& spec,
                                 Handlers handlers)
    : loop_(loop), planner_(planner), spec_(spec), handlers_(std::move(handlers)) {
  if (!spec.elastic.discovery.empty())
    discovery_.emplace(loop, spec,
                       HostDiscovery::Handlers{[this](const DiscoveredHosts& found) {
                                                 has_discovery_failed_ = false;
                                                 planner_.on_hosts(found.hosts, Clock::now());
                                                 look();
                                               },
                                               [this](const Error& error) { on_discovery_failed(error); }});
  timer_ = loop_.after({}, [this] { look(); });
}

void MembershipWatch::on_discovery_failed(const Error& error) {
  if (std::exchange(has_discovery_failed_, true)) return;
  handlers_.note(error.message() + "; the job goes on with the hosts that were found before");
}

void MembershipWatch::look() {
  const auto now = Clock::now();
  timer_.cancel();
  if (const std::string why = planner_.reason_to_leave(); !why.empty()) return change(why);
  if (const auto next = planner_.next_return(now)) timer_ = loop_.after(*next - now, [this] { look(); });

  const auto growth = planner_.growth(now);
  std::erase_if(asked_, [&growth](const auto& asked) {
    return !growth || std::none_of(growth->hosts.begin(), growth->hosts.end(),
                                   [&asked](const AllocatedNode& host) { return host.name == asked.first; });
  });
  if (!growth) return growing_since_.reset();
  if (!growing_since_) growing_since_ = now;
  for (const AllocatedNode& host : growth->hosts) ask(host);

  const auto settled = *growing_since_ + clock_duration(spec_.elastic.settle_seconds);
  if (now < settled) {
    timer_ = loop_.after(settled - now, [this] { look(); });
    return;
  }
  const bool have_all_answered =
      std::all_of(asked_.begin(), asked_.end(), [](const auto& asked) { return asked.second == nullptr; });
  if (have_all_answered) change(growth->why);
}

void MembershipWatch::change(const std::string& why) {
  // If the ranks have not been started yet, they will be soon.
  if (!handlers_.on_change(why)) timer_ = loop_.after(kRetry, [this] { look(); });
}

void MembershipWatch::ask(const AllocatedNode& host) {
  if (asked_.contains(host.name)) return;
  Command command;
  command.argv = check_command(spec_, host, own_path());
  const auto patience =
      std::chrono::seconds(static_cast<long>(spec_.ssh.start_timeout_seconds.value)) + kBeyondStart;
  asked_[host.name] = std::make_unique<WatchedCommand>(
      loop_, command, patience, kMaxOutput,
      [this, name = host.name](const Result<CommandOutput>& output) { on_asked(name, output); });
}

void MembershipWatch::on_asked(const std::string& host, const Result<CommandOutput>& output) {
  const bool has_answered = output && WIFEXITED(output->wait_status) && WEXITSTATUS(output->wait_status) == 0;
  if (has_answered) {
    asked_[host] = nullptr;
  } else {
    const std::string why = output ? failure_of(*output) : output.error().message();
    asked_.erase(host);
    planner_.on_host_failed(host, Clock::now());
    handlers_.note(host + " cannot join the job, which goes on without it: " + why);
  }
  look();
}

}  // namespace ddl::launcher
