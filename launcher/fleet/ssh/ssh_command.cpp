#include "launcher/fleet/ssh/ssh_command.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "contract/ddlrun.h"

namespace ddl::launcher {
namespace {

// Every login shell takes a word of these as it stands.
bool is_plain(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+,@%:=").find(c) != std::string_view::npos;
  });
}

// Blanks and the like are safe between single quotes in sh, csh and fish; these are not.
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

SshSettings ssh_settings(const JobSpec& spec, const std::string& own_path) {
  SshSettings settings;
  settings.port = spec.ssh_port;
  settings.identity_file = spec.ssh_identity_file;
  settings.extra_args = spec.ssh_args;
  settings.launch_agent = spec.launch_agent;
  settings.remote_path = spec.remote_path.empty() ? own_path : spec.remote_path;
  settings.start_timeout_seconds = spec.start_timeout_seconds;
  return settings;
}

Result<std::vector<std::string>> ssh_command(const SshSettings& settings, const AllocatedNode& node,
                                             const std::string& nonce) {
  if (!settings.launch_agent.empty()) return launch_agent_command(settings, node, nonce);
  const auto path = shell_word(settings.remote_path);
  if (!path) return fail(path.error());
  const int connect_seconds = std::max(1, static_cast<int>(std::ceil(settings.start_timeout_seconds)));
  // A pipe for our frames: no terminal, no question that nobody can answer, and nothing of a configuration that would
  // open other channels or run another command. Keys, known hosts, jump hosts and aliases are the user's own.
  std::vector<std::string> words = {
      "ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes", "-o",
      "RemoteCommand=none", "-o", "PermitLocalCommand=no",
      // A master that stayed behind would outlive the job.
      "-o", "ControlMaster=no", "-o", "ConnectTimeout=" + std::to_string(connect_seconds), "-o",
      "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"};
  if (const auto port = node.port ? node.port : settings.port) {
    words.insert(words.end(), {"-p", std::to_string(*port)});
  }
  if (!settings.identity_file.empty()) words.insert(words.end(), {"-i", settings.identity_file});
  if (node.user) words.insert(words.end(), {"-l", *node.user});
  words.insert(words.end(), settings.extra_args.begin(), settings.extra_args.end());
  words.insert(words.end(),
               {"--", node.name, "exec " + *path + " " + std::string(contract::kAgentOption) + " " + nonce});
  return words;
}

}  // namespace ddl::launcher
