#include "launcher/fleet/ssh.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "base/command.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "launcher/fleet/stream_tail.h"
#include "launcher/protocol/link.h"

namespace ddl::launcher {
namespace {

// Every login shell leaves a word of these characters unchanged.
bool is_plain(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+,@%:=").find(c) != std::string_view::npos;
  });
}

// In single quotes, sh, csh and fish leave all other characters unchanged.
bool is_quotable(std::string_view word) {
  return word.find_first_of("'!\\\n\r") == std::string_view::npos &&
         word.find('\0') == std::string_view::npos;
}

Result<std::string> shell_word(const std::string& word) {
  if (is_plain(word)) return word;
  if (is_quotable(word)) return "'" + word + "'";
  return fail(ErrorCode::kInvalidArgument,
              "the path " + shell_quote(word) +
                  " cannot be given to every login shell; install ddlrun where the path has no quotes, "
                  "backslashes or exclamation marks, or name it with --remote-path");
}

std::vector<std::string> launch_agent_command(const SshSettings& settings, const AllocatedNode& node,
                                              const std::string& nonce) {
  std::vector<std::string> words;
  for (std::string word : settings.launch_agent) {
    for (std::size_t at = word.find("%h"); at != std::string::npos;
         at = word.find("%h", at + node.name.size()))
      word.replace(at, 2, node.name);
    words.push_back(std::move(word));
  }
  words.insert(words.end(), {settings.remote_path, contract::kAgentOption, nonce});
  return words;
}

}  // namespace

Result<std::vector<std::string>> ssh_command(const SshSettings& settings, const AllocatedNode& node,
                                             const std::string& nonce) {
  if (!settings.launch_agent.empty()) return launch_agent_command(settings, node, nonce);
  DDL_ASSIGN(path, shell_word(settings.remote_path));
  const int connect_seconds = std::max(1, static_cast<int>(std::ceil(settings.start_timeout_seconds.value)));
  // ssh carries the frames of the link: no terminal, no prompts, and no settings of a configuration that would open
  // other channels or run another command. Keys, known hosts, jump hosts and aliases are the user's own.
  std::vector<std::string> words = {
      "ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes", "-o",
      "RemoteCommand=none", "-o", "PermitLocalCommand=no",
      // A ControlMaster process would outlive the job.
      "-o", "ControlMaster=no", "-o", "ConnectTimeout=" + std::to_string(connect_seconds), "-o",
      "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"};
  if (const int port = node.port.value_or(settings.port); port != 0)
    words.insert(words.end(), {"-p", std::to_string(port)});
  if (!settings.identity_file.empty()) words.insert(words.end(), {"-i", settings.identity_file});
  if (node.user) words.insert(words.end(), {"-l", *node.user});
  words.insert(words.end(), settings.args.begin(), settings.args.end());
  words.insert(words.end(),
               {"--", node.name, "exec " + path + " " + std::string(contract::kAgentOption) + " " + nonce});
  return words;
}

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Rule {
  std::string_view words;  // part of ssh's message
  std::string_view sentence;
  ErrorCode code = ErrorCode::kUnavailable;
};

// In the order in which they are tried: a changed host key also "fails verification", a closed key exchange may also
// mention a reset.
constexpr std::array kRules = {
    Rule{"Could not resolve hostname", "its name was not found; check the spelling, or use its address"},
    Rule{"REMOTE HOST IDENTIFICATION HAS CHANGED",
         "its host key has changed since it was last seen; if that is expected, remove the old one with "
         "ssh-keygen -R"},
    Rule{"Host key verification failed",
         "its host key is not known here; connect once by hand with ssh, or add it to known_hosts"},
    Rule{"Permission denied (",
         "it refused the login; ssh needs a key that works without a password (ssh-copy-id installs one)"},
    Rule{"Too many authentication failures",
         "it refused the login before ssh had tried the right key; name the key with -i"},
    Rule{"no such identity",
         "a key file that is named with -i or in the configuration of ssh does not exist"},
    Rule{"kex_exchange_identification",
         "it closed the connection before the key exchange; it may be overloaded", ErrorCode::kBusy},
    Rule{"ssh_exchange_identification",
         "it closed the connection before the key exchange; it may be overloaded", ErrorCode::kBusy},
    Rule{"Connection timed out during banner exchange", "it accepted the connection and then sent nothing",
         ErrorCode::kBusy},
    Rule{"Connection refused", "it refuses ssh connections; is sshd running there, and on this port?"},
    Rule{"No route to host", "there is no route to it; is it up, and in this network?"},
    Rule{"Network is unreachable", "there is no route to its network from here"},
    Rule{"Connection timed out", "it does not answer; is it up?"},
    Rule{"Operation timed out", "it does not answer; is it up?"},
    Rule{"Connection reset by", "it closed the connection", ErrorCode::kBusy},
    Rule{"Connection closed by", "it closed the connection", ErrorCode::kBusy},
    Rule{"Bad owner or permissions", "ssh does not accept its own configuration"},
    Rule{"Bad configuration option", "ssh does not accept its own configuration"},
    Rule{"Bad port", "ssh does not accept the port"},
};

std::string quoted(std::string_view who, const std::string& lines) {
  if (lines.empty()) return "";
  return " (" + (lines.starts_with("ssh: ") ? "" : std::string(who) + ": ") + lines + ")";
}

std::string end_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "was killed by " + signal_text(WTERMSIG(wait_status));
  return "ended with " + std::to_string(WEXITSTATUS(wait_status));
}

/// The lines that name ddlrun's path, as every shell and loader does in a message about it: others may be what start-up
/// files of the shell write.
std::string lines_about(const std::string& path, std::string_view text) {
  std::string lines;
  for (const std::string_view line : split(text, '\n')) {
    if (contains(line, path)) lines += std::string(line) + "\n";
  }
  return lines;
}

/// What a login shell, or the loader, has written about ddlrun.
std::optional<std::string> describe_ddlrun_failure(const SshAttempt& attempt, int code) {
  const std::string about = lines_about(attempt.remote_path, attempt.errors);
  const std::string messages = last_error_lines(about);
  // The shells' own codes; csh's is 1 for every failure. The same codes may be those of another command in a start-up
  // file that ends at its first failure.
  const auto is = [&](int own_code) {
    return code == own_code && (!about.empty() || last_error_lines(attempt.errors).empty());
  };
  const std::string ddlrun = "ddlrun at " + attempt.remote_path;
  if (contains(about, "xec format error")) {
    return ddlrun +
           " was built for another kind of machine; install one for this host and name it with "
           "--remote-path" +
           quoted("its shell", messages);
  }
  // Messages of glibc's and musl's dynamic loaders: ddlrun was found, and a library that it needs was not.
  if (contains(about, "error while loading shared libraries") ||
      contains(about, "Error loading shared library") ||
      (contains(about, "version `") && contains(about, "' not found"))) {
    return ddlrun +
           " cannot run there, because a shared library that it needs is missing or too old; install it "
           "there, set LD_LIBRARY_PATH in a start-up file of its login shell, or name another ddlrun with "
           "--remote-path" +
           quoted("it", messages);
  }
  if (is(127) || contains(about, "ommand not found") || contains(about, "No such file or directory")) {
    return "ddlrun was not found at " + attempt.remote_path +
           "; install it there, or give its path with --remote-path" + quoted("its shell", messages);
  }
  if (is(126) || contains(about, "ermission denied")) {
    return ddlrun +
           " cannot be executed; change its permissions, or give the path of another with --remote-path" +
           quoted("its shell", messages);
  }
  return std::nullopt;
}

}  // namespace

Error describe_ssh_failure(const SshAttempt& attempt) {
  const int code = WIFEXITED(attempt.wait_status) ? WEXITSTATUS(attempt.wait_status) : -1;
  // Other codes than ssh's own are those of the login shell.
  const bool is_ssh_itself = code == 255;
  if (!is_ssh_itself) {
    if (auto sentence = describe_ddlrun_failure(attempt, code))
      return {ErrorCode::kUnavailable, *std::move(sentence)};
  }
  const bool is_agents = contains(attempt.errors, "ddlrun agent on ");  // it ran, and says why it has ended
  const bool is_shells = code >= 0 && !is_ssh_itself && !is_agents && attempt.program == "ssh";
  const std::string messages = last_error_lines(attempt.errors);
  for (const Rule& rule : kRules) {
    if (!is_shells && contains(attempt.errors, rule.words))
      return {rule.code, std::string(rule.sentence) + quoted("ssh", messages)};
  }
  const std::string written =
      last_error_lines(std::string(attempt.noise) + "\n" + std::string(attempt.errors));
  std::string sentence =
      attempt.program + " " + end_of(attempt.wait_status) + " before ddlrun had answered" +
      (is_shells
           ? ", because the login shell there ended first: look for an exit or exec in its start-up files, "
             "such as ~/.bashrc, and at the account's shell"
           : "") +
      quoted("it wrote", written);
  return {ErrorCode::kUnavailable, std::move(sentence)};
}

namespace {

constexpr auto kSshEndDeadline = std::chrono::seconds(1);

/// The ssh process, or the command of --launch-agent, of one agent.
class SshProcess : public AgentProcess {
 public:
  SshProcess(Child child, std::string program, std::string remote_path)
      : child_(std::move(child)), program_(std::move(program)), remote_path_(std::move(remote_path)) {}

  std::string how_it_ended() override {
    if (!child_.wait(Deadline::after(kSshEndDeadline)))
      return "its connection closed, but " + program_ + " is still running";
    const int status = child_.wait_status();
    if (WIFSIGNALED(status)) return program_ + " was killed by " + signal_text(WTERMSIG(status));
    const int code = WEXITSTATUS(status);
    // 255 is ssh's own failure; every other code is that of the agent on the host.
    if (code == 255) return "its agent was killed or the ssh connection broke";
    if (code > 128) return "the agent was killed by " + signal_text(code - 128);
    return "the agent ended with " + std::to_string(code);
  }

  Error why_not_started(std::string_view noise, std::string_view errors) override {
    if (!child_.wait(Deadline::after(kSshEndDeadline))) {
      const std::string messages = last_error_lines(errors);
      return {ErrorCode::kUnavailable, program_ + " closed the connection but is still running" +
                                           (messages.empty() ? "" : " (it wrote: " + messages + ")")};
    }
    return describe_ssh_failure({program_, remote_path_, child_.wait_status(), noise, errors});
  }

  void clean_up(Deadline deadline) override { child_.end(deadline); }

 private:
  Child child_;
  std::string program_;
  std::string remote_path_;
};

class SshStarter : public NodeStarter {
 public:
  explicit SshStarter(SshSettings settings) : settings_(std::move(settings)) {}

  bool forks() const override { return false; }

  Result<StartedAgent> start(const AllocatedNode& node) override {
    DDL_ASSIGN(nonce, make_nonce());
    DDL_ASSIGN(words, ssh_command(settings_, node, nonce));
    auto child = start_piped({.argv = words, .keeps_descriptors = true});
    if (!child) {
      return fail(child.error().code(),
                  child.error().message() +
                      (words.front() == "ssh" ? "; install an ssh client (openssh-client)" : ""));
    }
    return StartedAgent{
        std::move(child->out), std::move(child->in), std::move(child->err), std::move(nonce),
        std::make_unique<SshProcess>(std::move(child->child), words.front(), settings_.remote_path)};
  }

 private:
  SshSettings settings_;
};

}  // namespace

std::unique_ptr<NodeStarter> make_ssh_starter(SshSettings settings) {
  return std::make_unique<SshStarter>(std::move(settings));
}

}  // namespace ddl::launcher
