// Skips have a reason: scripts/test lists these lines at its end.
#pragma once

#include <cstdio>
#include <string>

#include "support/catch.h"

/// Leaves the current test case, which then counts as passed: only if this machine lacks a feature, never for a
/// failure. reason is a C string or a std::string.
#define DDL_SKIP(reason)                                                                     \
  do {                                                                                       \
    std::printf("SKIPPED: %s: %s\n", Catch::getResultCapture().getCurrentTestName().c_str(), \
                std::string(reason).c_str());                                                \
    return;                                                                                  \
  } while (false)
