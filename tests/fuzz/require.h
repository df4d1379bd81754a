// What the fuzzers require of the code that they call.
#pragma once

#include <cstdlib>
#include <string>

#include "base/error.h"

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// The text was refused, with one sentence that can be printed.
inline void require_refusal(const ddl::Error& error) {
  require(error.code() == ddl::ErrorCode::kInvalidArgument);
  const std::string message = error.message();
  require(!message.empty() && message.size() < 1000);
  for (const char c : message) require(static_cast<unsigned char>(c) >= 0x20 && c != '\x7f');
}
