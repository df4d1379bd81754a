// What the C++ wrapper throws. Part of ddl.hpp.
#ifndef DDL_ERROR_HPP
#define DDL_ERROR_HPP

#include <stdexcept>
#include <string>

#include "ddl/ddl.h"

namespace ddl {

/// The only exception type: what() is the library's message, status() its code.
class Error : public std::runtime_error {
 public:
  Error(ddl_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  ddl_status status() const noexcept { return status_; }

 private:
  ddl_status status_;
};

namespace detail {

inline void check(ddl_status status) {
  if (status != DDL_OK) throw Error(status, ddl_last_error());
}

/// For containers whose size is part of a call: refused like an invalid argument, before any function of ddl.h is
/// called.
inline void require(bool condition, const char* sentence) {
  if (!condition) throw Error(DDL_ERROR_INVALID_ARGUMENT, sentence);
}

}  // namespace detail

}  // namespace ddl

#endif  // DDL_ERROR_HPP
