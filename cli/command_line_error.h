// Why ddlrun refuses what it was given.
#pragma once

#include <string>

#include "contract/ddlrun.h"

namespace ddl::cli {

/// Why a command line is refused, for a person.
struct CommandLineError {
  std::string message;  ///< one sentence that quotes what was given
  std::string hint;     ///< what to do instead
  int exit_code = contract::kUsageError;
};

}  // namespace ddl::cli
