#include "launcher/process/shell_attributes.h"

#include <sys/stat.h>

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "base/text.h"

namespace ddl::launcher {
namespace {

constexpr struct {
  const char* name;
  int resource;
} kCarried[] = {
    {"core", RLIMIT_CORE}, {"fsize", RLIMIT_FSIZE}, {"nofile", RLIMIT_NOFILE}, {"stack", RLIMIT_STACK}};

rlimit own_limit(int resource) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  return limit;
}

std::int64_t number_of(rlim_t value) {
  return value == RLIM_INFINITY || value > INT64_MAX ? kUnlimited : static_cast<std::int64_t>(value);
}

rlim_t rlim_of(std::int64_t number) {
  return number < 0 ? RLIM_INFINITY : static_cast<rlim_t>(number);  // RLIM_INFINITY is all ones
}

std::string text_of(std::int64_t limit) { return limit < 0 ? "unlimited" : std::to_string(limit); }

}  // namespace

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

std::vector<int> ending_signals() {
  std::vector<int> signals = {SIGTERM, SIGQUIT};
  for (const int signal : {SIGINT, SIGHUP}) {
    if (!is_ignored(signal)) signals.push_back(signal);
  }
  return signals;
}

ShellAttributes own_shell_attributes() {
  ShellAttributes shell;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  shell.umask = mask;
  for (const auto& [name, resource] : kCarried)
    shell.soft_limits[name] = number_of(own_limit(resource).rlim_cur);
  shell.ignores_interrupt = is_ignored(SIGINT);
  return shell;
}

ResourceLimits own_hard_limits() {
  ResourceLimits limits;
  for (const auto& [name, resource] : kCarried) limits[name] = number_of(own_limit(resource).rlim_max);
  return limits;
}

std::vector<std::pair<int, rlimit>> settable(const ResourceLimits& soft) {
  std::vector<std::pair<int, rlimit>> limits;
  for (const auto& [name, resource] : kCarried) {
    const auto wanted = soft.find(name);
    if (wanted == soft.end()) continue;
    const rlim_t hard = own_limit(resource).rlim_max;
    limits.emplace_back(resource, rlimit{std::min(rlim_of(wanted->second), hard), hard});
  }
  return limits;
}

std::string reduced_limits(const ResourceLimits& soft, const ResourceLimits& hard) {
  std::vector<std::string> reduced;
  for (const auto& [name, wanted] : soft) {
    const auto most = hard.find(name);
    if (most == hard.end() || rlim_of(wanted) <= rlim_of(most->second)) continue;
    reduced.push_back(fmt::format("{} {} and not {}", name, text_of(most->second), text_of(wanted)));
  }
  return join(reduced, ", ");
}

std::string shell_attributes_text(const ShellAttributes& shell) {
  std::vector<std::string> limits;
  for (const auto& [name, value] : shell.soft_limits) limits.push_back(name + " " + text_of(value));
  std::string text = fmt::format("umask {:04o}", std::max(shell.umask, 0));
  if (!limits.empty()) text += "; soft limits: " + join(limits, ", ");
  if (shell.ignores_interrupt) text += "; SIGINT is ignored";
  return text;
}

}  // namespace ddl::launcher
