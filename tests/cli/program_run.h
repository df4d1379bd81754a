// Runs a program to its end and keeps its output.
#pragma once

#include <string>
#include <vector>

namespace ddl::test {

struct ProgramRun {
  int exit_code = -1;  ///< 128+N after signal N, as in a shell
  std::string out;
  std::string err;
};

struct ProgramSetup {
  std::vector<std::string> argv;         ///< argv[0] is a path
  std::vector<std::string> environment;  ///< "NAME=VALUE", replaces or adds to the test's own variables
  std::string directory;                 ///< "" = the test's own
  std::string out_path;                  ///< written to instead of ProgramRun::out; "-" = closed
  std::string stdin_text;                ///< contents of its standard input; "" = /dev/null
  bool close_all_standard_fds = false;
};

/// A program that has not ended after 30 seconds is killed and fails the test.
ProgramRun run_program(const ProgramSetup& setup);

}  // namespace ddl::test
