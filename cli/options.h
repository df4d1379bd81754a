// From the words of a command line to what the user asked for.
#pragma once

#include <span>
#include <string>

#include <tl/expected.hpp>

#include "contract/exit_code.h"
#include "launcher/job/job_spec.h"

namespace ddl::cli {

enum class Action { kRun, kDryRun, kCheckBuild, kHelp, kVersion };

/// One valid command line.
struct Request {
  Action action = Action::kRun;
  bool json = false;      ///< reports as one line of JSON
  launcher::JobSpec job;  ///< complete for kRun and kDryRun; for the others only verbose and quiet
};

/// Why a command line is refused, for a person.
struct CommandLineError {
  std::string message;  ///< one sentence that quotes what was given
  std::string hint;     ///< what to do instead
  int exit_code = contract::kUsageError;
};

/// What the command line is read against.
struct CommandLineContext {
  std::string current_directory;  ///< absolute; relative directories are meant from here
  int allowed_cpus = 1;           ///< for the suggestion when -np is missing
};

/// Reads the words after argv[0]. Pure: no file, no environment variable is looked at.
tl::expected<Request, CommandLineError> parse_command_line(std::span<const std::string> words,
                                                           const CommandLineContext& context);

}  // namespace ddl::cli
