#include "cli/commands/job_checks.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/text.h"

namespace ddl::cli {

namespace fs = std::filesystem;

std::optional<CommandLineError> check_workdir(const launcher::JobSpec& job,
                                              const launcher::Allocation& allocation,
                                              const std::string& hostname) {
  const bool runs_here = std::any_of(
      allocation.nodes.begin(), allocation.nodes.end(),
      [&](const launcher::AllocatedNode& node) { return launcher::is_this_machine(node, hostname); });
  if (!runs_here) return std::nullopt;
  const std::string name = shell_quote(job.workdir);
  std::error_code error;
  const fs::file_status status = fs::status(job.workdir, error);
  if (status.type() == fs::file_type::not_found) {
    return CommandLineError{"the working directory " + name + " does not exist",
                            "create it, or give another with --workdir", contract::kNotFound};
  }
  if (status.type() == fs::file_type::none) {
    return CommandLineError{"the working directory " + name + " cannot be used: " + error.message(),
                            "give another with --workdir", contract::kNotExecutable};
  }
  if (status.type() != fs::file_type::directory) {
    return CommandLineError{"the working directory " + name + " is not a directory",
                            "give a directory with --workdir", contract::kNotExecutable};
  }
  if (::access(job.workdir.c_str(), X_OK) != 0) {
    return CommandLineError{"the working directory " + name + " may not be entered",
                            "change its permissions, or give another with --workdir",
                            contract::kNotExecutable};
  }
  return std::nullopt;
}

std::optional<CommandLineError> check_identity_file(const launcher::JobSpec& job) {
  if (job.ssh_identity_file.empty() || ::access(job.ssh_identity_file.c_str(), R_OK) == 0)
    return std::nullopt;
  return CommandLineError{"the key " + shell_quote(job.ssh_identity_file) +
                              " cannot be read: " + std::generic_category().message(errno),
                          "give a file of yours with -i, or omit -i for the keys of ssh's configuration"};
}

std::optional<CommandLineError> create_output_directory(const launcher::JobSpec& job) {
  if (job.output_directory.empty()) return std::nullopt;
  const std::string name = shell_quote(job.output_directory);
  const std::string hint = "give a directory that can be written to with --output-filename";
  std::error_code error;
  fs::create_directories(job.output_directory, error);
  if (error) {
    return CommandLineError{"the output directory " + name + " cannot be created: " + error.message(), hint};
  }
  if (::access(job.output_directory.c_str(), W_OK | X_OK) != 0) {
    return CommandLineError{"the output directory " + name + " may not be written to", hint};
  }
  return std::nullopt;
}

std::vector<std::string> start_notes(const launcher::JobSpec& job, const Environment& environment) {
  std::vector<std::string> notes;
  for (const launcher::EnvironmentExport& one : job.exports) {
    if (!one.value && !environment.contains(one.name)) {
      notes.push_back("-x " + one.name + ": " + one.name + " is not set here, so the ranks do not get it");
    }
  }
  return notes;
}

}  // namespace ddl::cli
