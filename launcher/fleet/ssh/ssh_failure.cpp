#include "launcher/fleet/ssh/ssh_failure.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "launcher/fleet/telling_lines.h"

namespace ddl::launcher {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Rule {
  std::string_view words;  // in what ssh writes
  std::string_view sentence;
  bool retry = false;
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
         "ssh was not let in; it needs a key that works without a password (ssh-copy-id installs one)"},
    Rule{"Too many authentication failures",
         "ssh was not let in before its right key had been tried; name the key with -i"},
    Rule{"no such identity",
         "a key file that is named with -i or in the configuration of ssh does not exist"},
    Rule{"kex_exchange_identification",
         "it closed the connection before the key exchange; it may be overloaded", true},
    Rule{"ssh_exchange_identification",
         "it closed the connection before the key exchange; it may be overloaded", true},
    Rule{"Connection timed out during banner exchange", "it took the connection and said nothing", true},
    Rule{"Connection refused", "it refuses ssh connections; is sshd running there, and on this port?"},
    Rule{"No route to host", "there is no way to it; is it up, and in this network?"},
    Rule{"Network is unreachable", "there is no way to its network from here"},
    Rule{"Connection timed out", "it does not answer; is it up?"},
    Rule{"Operation timed out", "it does not answer; is it up?"},
    Rule{"Connection reset by", "it closed the connection", true},
    Rule{"Connection closed by", "it closed the connection", true},
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

}  // namespace

StartFailure describe_ssh_failure(const SshAttempt& attempt) {
  const std::string said = telling_lines(attempt.errors);
  const int code = WIFEXITED(attempt.wait_status) ? WEXITSTATUS(attempt.wait_status) : -1;
  // 255 is ssh's own; what comes from the other side is the login shell's, and csh's is 1 for everything.
  const bool is_ssh_itself = code == 255;
  if (!is_ssh_itself && contains(attempt.errors, "xec format error")) {
    return {
        "ddlrun at " + attempt.remote_path +
        " was built for another kind of machine; install one for this host and name it with --remote-path" +
        quoted("its shell", said)};
  }
  // The loader's words: it was found, and something that it needs was not. glibc's and musl's.
  if (!is_ssh_itself &&
      (contains(attempt.errors, "error while loading shared libraries") ||
       contains(attempt.errors, "Error loading shared library") ||
       (contains(attempt.errors, "version `") && contains(attempt.errors, "' not found")))) {
    return {
        "ddlrun at " + attempt.remote_path +
        " cannot run there, because a shared library that it needs is missing or too old; install it there, "
        "set "
        "LD_LIBRARY_PATH in a start-up file of its login shell, or name another ddlrun with --remote-path" +
        quoted("it", said)};
  }
  if (code == 127 || (!is_ssh_itself && (contains(attempt.errors, "ommand not found") ||
                                         contains(attempt.errors, "No such file or directory")))) {
    return {"ddlrun was not found at " + attempt.remote_path +
            "; install it there, or name its place with --remote-path" + quoted("its shell", said)};
  }
  if (code == 126 || (!is_ssh_itself && contains(attempt.errors, "ermission denied"))) {
    return {"ddlrun at " + attempt.remote_path + " cannot be executed" + quoted("its shell", said)};
  }
  for (const Rule& rule : kRules) {
    if (contains(attempt.errors, rule.words))
      return {std::string(rule.sentence) + quoted("ssh", said), rule.retry};
  }
  const std::string noise = telling_lines(attempt.noise);
  return {attempt.program + " " + end_of(attempt.wait_status) + " before ddlrun had answered" +
          quoted("it wrote", said.empty() ? noise : said)};
}

}  // namespace ddl::launcher
