// Runs a program to its end and keeps what it wrote.
#pragma once

#include <string>
#include <vector>

namespace ddl::test {

struct ProgramRun {
  int exit_code = -1;  ///< 128+N after signal N, as a shell has it
  std::string out;
  std::string err;
};

struct ProgramSetup {
  std::vector<std::string> argv;         ///< argv[0] is a path
  std::vector<std::string> environment;  ///< "NAME=VALUE", instead of or beside the test's own
  std::string directory;                 ///< "" = the test's own
  std::string out_path;                  ///< written to instead of ProgramRun::out; "-" = closed
  std::string stdin_text;                ///< what its standard input holds; "" = /dev/null
  bool close_all_standard_fds = false;
};

/// A program that has not ended after 30 seconds is killed and fails the test.
ProgramRun run_program(const ProgramSetup& setup);

}  // namespace ddl::test
