#include "launcher/node/preemption_watch.h"

#include <sys/wait.h>

#include <chrono>

#include "base/printable_text.h"
#include "base/process.h"
#include "base/text.h"

namespace ddl::launcher {
namespace {

constexpr auto kNoLimit = std::chrono::hours(24 * 365);
constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

std::string how_it_failed(const Result<CommandOutput>& output) {
  if (!output) return "failed: " + output.error().message();
  const std::string err = printable_line(trim(output->err.substr(0, output->err.find('\n'))));
  const std::string how = WIFSIGNALED(output->wait_status)
                              ? "was killed by " + signal_text(WTERMSIG(output->wait_status))
                              : "exited with " + std::to_string(WEXITSTATUS(output->wait_status));
  return how + (err.empty() ? "" : ": " + err);
}

}  // namespace

void PreemptionWatch::start(const std::string& command) {
  if (command.empty()) return;
  Command shell;
  shell.argv = {"/bin/sh", "-c", command};
  run_.emplace(loop_, shell, kNoLimit, kMaxBytes,
               [this](const Result<CommandOutput>& output) { on_end(output); });
}

void PreemptionWatch::on_end(const Result<CommandOutput>& output) {
  const bool is_notice = output && output->wait_status == 0;
  const std::string how = is_notice ? "" : how_it_failed(output);
  run_.reset();
  if (is_notice) return handlers_.on_preemption();
  handlers_.on_failure("the command of --preemption-watch " + how +
                       "; its ranks will not leave before the host is taken away");
}

}  // namespace ddl::launcher
