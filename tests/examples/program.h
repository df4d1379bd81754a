// Runs a program of the build for a test, and reads its output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/command.h"
#include "base/deadline.h"
#include "base/fd.h"

namespace ddl::test {

struct Outcome {
  int exit_code = -1;  ///< as in a shell: 128+N after signal N
  std::string output;  ///< stdout and stderr together, in the order in which they were written
};

/// Starts in the constructor, with an empty standard input. Functions that wait have a timeout of two minutes: then
/// they kill the program and throw std::runtime_error with its output.
class Program {
 public:
  /// argv[0] is a path. Throws std::runtime_error if the program cannot be started.
  explicit Program(const std::vector<std::string>& argv);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Returns as soon as text has been printed; throws if the program closes its output without it.
  void wait_for_output(const std::string& text);
  void signal(int number);
  /// Waits for the end of the output and of the program.
  Outcome wait();

 private:
  bool read_more();  // false at the end of the output
  Deadline deadline_;
  UniqueFd output_fd_;
  std::string output_;
  std::optional<Child> child_;
};

}  // namespace ddl::test
