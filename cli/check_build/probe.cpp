#include "cli/check_build/probe.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/child_question.h"
#include "base/command.h"
#include "base/command_output.h"
#include "base/files.h"
#include "base/printable_text.h"
#include "base/process_tree.h"
#include "base/text.h"
#include "cli/check_build/capability.h"
#include "cli/options/this_process.h"

namespace ddl::cli {

namespace {

Finding no_finding(const Error& error) {
  Finding finding;
  finding.detail = error.message();
  return finding;
}

Finding answer_of(ChildQuestion& child, Deadline deadline) {
  const auto text = child.answer(deadline);
  if (!text) return no_finding(text.error());
  auto finding = finding_of(*text);
  return finding ? *std::move(finding) : no_finding(finding.error());
}

bool is_complete_for(const Probe& probe) {
  return probe.helper == nullptr || ::access(libexec_path(probe.helper->name).c_str(), X_OK) == 0;
}

Finding run(const Probe& probe) {
  if (is_complete_for(probe)) return probe.run();
  return fails("not tried, because this build has no " + libexec_path(probe.helper->name),
               probe.helper->remedy);
}

/// The first line that contains words: libpmix prints lines of dashes around its messages.
std::string first_words(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.find_first_not_of("-=* \t\r") != std::string_view::npos) return printable_line(trim(line));
  }
  return {};
}

}  // namespace

Result<std::vector<Capability>> run_probes(std::span<const Probe> probes, std::chrono::milliseconds timeout) {
  // TMPDIR of the probes, because a job that is killed leaves files. It is destroyed, and so removed, after the
  // reaper has ended the last process that could write to it.
  const auto folder = make_scratch_folder();
  const OrphanReaper reaper;
  const Deadline deadline = Deadline::after(timeout);
  std::vector<ChildQuestion> children;
  children.reserve(probes.size());
  for (const Probe& probe : probes) {
    // An error says nothing about the capability: the process has too few descriptors, or the user too many processes.
    DDL_ASSIGN(child, ChildQuestion::ask([&probe, &folder] {
                 if (folder) ::setenv("TMPDIR", folder->path().c_str(), 1);
                 return to_text(run(probe));
               }));
    children.push_back(std::move(child));
  }
  std::vector<Capability> all;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const Probe& probe = probes[i];
    Capability one{probe.heading, probe.name, probe.key, probe.not_built == nullptr && is_complete_for(probe),
                   answer_of(children[i], deadline)};
    if (probe.not_built != nullptr) {
      // The reason comes first, then what was found here.
      const std::string found = one.here.works ? "" : one.here.detail;
      one.here.detail = probe.not_built + (found.empty() ? "" : ", and " + found);
      one.here.remedy.clear();
    }
    all.push_back(std::move(one));
  }
  return all;
}

Result<TemporaryFolder> make_scratch_folder() {
  return TemporaryFolder::make_in(tmp_directory(), "ddlrun-check-build");
}

Finding works(std::string version, std::string file, std::string detail) {
  return {true, std::move(version), std::move(file), std::move(detail), {}};
}

Finding fails(std::string detail, std::string remedy) {
  return {false, {}, {}, std::move(detail), std::move(remedy)};
}

CommandPath command_in_path(const std::string& name, const std::string& remedy) {
  const char* path = std::getenv("PATH");
  if (auto file = find_in_path(name, path != nullptr ? path : "/usr/bin:/bin")) return {*std::move(file), {}};
  return {{}, fails("there is no " + name + " in PATH", remedy)};
}

FirstLine first_line_of(const std::vector<std::string>& argv) {
  const auto output = command_output(argv, {}, kCommandTimeout);
  if (!output) return {{}, fails(output.error().message())};
  std::string line = first_words(trim(output->out).empty() ? output->err : output->out);
  if (!WIFEXITED(output->wait_status) || WEXITSTATUS(output->wait_status) != 0) {
    const std::string ended = WIFSIGNALED(output->wait_status)
                                  ? "was killed by " + signal_text(WTERMSIG(output->wait_status))
                                  : "exits with " + std::to_string(WEXITSTATUS(output->wait_status));
    return {{}, fails(join(argv, " ") + " " + ended + (line.empty() ? "" : ": " + line))};
  }
  if (line.empty()) return {{}, fails(join(argv, " ") + " prints nothing")};
  return {std::move(line), {}};
}

}  // namespace ddl::cli
