// Expectations of code that runs as a rank, on any thread or in any process, where Catch2's do not work.
#pragma once

#include <stdexcept>
#include <string>

#include "ddl/ddl.h"

namespace ddl::conformance {

inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

inline void expect_ok(ddl_status status, const std::string& what) {
  expect(status == DDL_OK, what + ": " + ddl_status_name(status) + ": " + ddl_last_error());
}

inline void expect_status(ddl_status status, ddl_status wanted, const std::string& what) {
  expect(status == wanted, what + ": expected " + ddl_status_name(wanted) + ", got " +
                               ddl_status_name(status) +
                               (status == DDL_OK ? "" : std::string(": ") + ddl_last_error()));
}

inline void expect_contains(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos, "\"" + text + "\" does not contain \"" + part + "\"");
}

}  // namespace ddl::conformance
