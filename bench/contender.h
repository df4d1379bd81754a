// A contender of a benchmark: a launcher, a library or a limit, with the command that is measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/command.h"

namespace ddl::bench {

/// The command as a shell takes it: "NAME=value /path/to/program argument".
std::string command_text(const Command& command);

struct Contender {
  std::string name;   ///< unique within its case: "ddlrun", "openmpi-tuned"
  std::string label;  ///< for people: "Open MPI, malloc tuned"
  std::string why;    ///< why it takes part, and the reason for its settings
  Command command;
  /// The contender that this one repeats for the A/A run; "" if it is not a repetition.
  std::string again_of;
  bool is_bound = true;  ///< each rank to one CPU; else, with threads of its own, to all of the job
  bool is_ours = false;  ///< drawn in the accent colour
  std::optional<std::string> absent;  ///< why it cannot run here; it then has no figures
  int failed_runs = 0;                ///< runs that failed and were repeated
  std::string last_failure;           ///< how the last of these runs failed
  std::optional<std::string> failed;  ///< how two runs in a row failed; it then has no figures either

  /// An estimate of the shortest possible time: the bare measuring loop, a launcher that only starts processes, or a
  /// prototype of the work that no library can avoid.
  bool is_limit() const { return name.ends_with("floor") || name.ends_with("limit"); }
  bool is_excluded() const { return absent || failed; }
  /// "absent: mpirun is not in PATH", "FAILED: exited with 3"; "" if it is not excluded.
  std::string why_excluded() const {
    if (failed) return "FAILED: " + *failed;
    return absent ? "absent: " + *absent : "";
  }
};

}  // namespace ddl::bench
