// Tests that all ranks of a job run together, as the main function of a program that ddlrun starts.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>
#include <vector>

#include "ddl/ddl.hpp"

namespace ddl::test {

/// Joins the job and runs the tests, by name, one after the other. The process ends at the first that throws.
inline int run_on_ranks(const std::vector<std::pair<const char*, void (*)(Context&)>>& tests) {
  const char* running = "joining";
  try {
    Context context(60.0);
    for (const auto& [name, test] : tests) {
      running = name;
      test(context);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", running, error.what());
    std::_Exit(1);  // while it is a member, so that this is the job's first failure
  }
  std::printf("all %zu tests passed\n", tests.size());
  return 0;
}

}  // namespace ddl::test
