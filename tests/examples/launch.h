// Starts the examples for tests: alone, or on several ranks with ddlrun.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "examples/program.h"

namespace ddl::test {

using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// The command line of an example on size ranks; size 0 starts it without a launcher, as a world of one.
/// Its output is unchanged, without tags.
Arguments command_line(const std::string& example, int size, const Arguments& arguments);

/// Runs it to its end.
Outcome run_example(const std::string& example, int size, const Arguments& arguments);

/// Sends it a signal as soon as it has printed text, and returns its exit code. On a busy machine it may have ended
/// before: then prepare is called and the example started again, until the signal is in time.
int interrupt_example(const Arguments& argv, const std::string& text, int signal,
                      const std::function<void()>& prepare);

}  // namespace ddl::test
