// A program of a framework under ddlrun.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/environment.h"

namespace ddl::frameworks {

/// kHere: on this host. kTwoHosts: on node1 and node2 of the cluster on whose head the test runs. kSlurm: in a job of
/// its Slurm, on two nodes.
enum class Place { kHere, kTwoHosts, kSlurm };

/// Importing a framework takes seconds for each rank, on a loaded machine many.
inline constexpr std::chrono::seconds kPatience(240);

/// A program, such as one of tests/frameworks/programs, run by the Python of an environment.
struct Program {
  std::string environment;
  std::string file;                      ///< an absolute path, or in that folder
  std::vector<std::string> options{};    ///< of ddlrun
  std::vector<std::string> arguments{};  ///< of the program
  int lines = 2;                         ///< of ranks, each of which has what is printed
  std::string printed = ": right\n";     ///< if all is right
  bool has_ddl = false;                  ///< finds the Python package ddl
  std::string drained_at{};              ///< see output_of(); the exit code is to be 119
};

/// What has ended has printed.
struct Output {
  int status = 0;
  std::string out;
  std::string err;
};
/// Runs ddlrun with these words at the place until it has ended, and requires that nothing is left. environment: added
/// to the test's own. drained_at: on this host, ddlrun gets SIGUSR1 when this has been printed.
Output output_of(Place place, std::vector<std::string> arguments, const ddl::Environment& environment = {},
                 const std::string& drained_at = {});

/// Runs it, and requires that it succeeds, that the ranks print their lines, and that nothing is left. Without the
/// environment it does nothing (python_of()).
void run(Place place, const Program& program);

}  // namespace ddl::frameworks
