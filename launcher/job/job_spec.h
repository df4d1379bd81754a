// What the user asked for, validated, and nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ddl::launcher {

/// One -x: NAME=VALUE sets it for the ranks; a value of nullopt passes on the head's own.
struct EnvironmentExport {
  std::string name;
  std::optional<std::string> value;
};

/// Which ranks read ddlrun's standard input; the others read /dev/null.
enum class StdinTarget { kRank0, kAll, kNone };

/// One job, as the user asked for it. Made by cli/ from argv, read by everybody, changed by nobody.
struct JobSpec {
  std::vector<std::string> command;        ///< argv of every rank; command[0] is searched in the ranks' PATH
  int num_proc = 0;                        ///< number of ranks, at least 1
  std::vector<EnvironmentExport> exports;  ///< in the order given; a later one wins
  std::string workdir;                     ///< absolute; where every rank starts
  double timeout_seconds = 0;              ///< 0: none; then the job is ended and ddlrun exits with 124
  double kill_grace_seconds = 5;           ///< between the signal that asks ranks to end and SIGKILL
  StdinTarget stdin_target = StdinTarget::kRank0;
  bool oversubscribe = false;  ///< more ranks than slots are wanted

  std::string
      output_directory;    ///< "" or where rank.<padded>/{stdout,stderr} are written, besides the terminal
  bool tag_output = true;  ///< "[rank]<stdout>:" before every line
  bool timestamp_output = false;  ///< the time at which a line was written, before every line

  bool verbose = false;
  bool quiet = false;  ///< no notes of our own; errors and ranks' output stay
};

}  // namespace ddl::launcher
