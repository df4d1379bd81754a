#include "launcher/node/preemption_watch.h"

#include "base/command_output.h"

namespace ddl::launcher {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

std::string failure_of(const Result<CommandOutput>& output) {
  if (output && output->wait_status == 0) return "";
  return "the command of --preemption-watch " +
         (output ? how_it_failed(*output) : "failed: " + output.error().message()) +
         "; its ranks will not leave before the host is taken away";
}

}  // namespace

void PreemptionWatch::start(const std::string& command) {
  if (command.empty()) return;
  Command shell;
  shell.argv = {"/bin/sh", "-c", command};
  run_.emplace(loop_, shell, std::nullopt, kMaxBytes, [this](const Result<CommandOutput>& output) {
    const std::string failure = failure_of(output);
    run_.reset();
    on_end_(failure);
  });
}

}  // namespace ddl::launcher
