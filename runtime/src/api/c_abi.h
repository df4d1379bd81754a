// What every C function of libddl needs: the handle, option structs of any version, the last error, and a guard
// against exceptions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "ddl/ddl.h"
#include "runtime/src/common/failure.h"
#include "runtime/src/context/context.h"

namespace ddl::runtime {

// The calling thread's last error, as ddl_last_error() returns it.

/// Stores the message for this thread, truncated if it is very long, and returns the status. Allocates nothing.
ddl_status report(ddl_status status, std::string_view message) noexcept;
inline ddl_status report(const Failure& failure) noexcept { return report(failure.status, failure.message); }
inline ddl_status report(const Outcome& outcome) noexcept {
  return outcome ? DDL_OK : report(outcome.error());
}

/// This thread's last error message; "" if there was none.
const char* last_error() noexcept;

// The boundary of libddl: no exception leaves a C function.

/// Of the exception that the caller has just caught: stores the message, and returns the status.
ddl_status report_exception() noexcept;

// Reads option structs of ddl.h, whose size tells which version of the header the program was compiled against.

/// Copies the program's options over the defaults. Fields that an older program does not have keep their defaults;
/// fields of a newer program that this library does not know must be zero, since it would silently ignore them.
template <class Options>
Outcome read_options(const Options* given, Options& options, const char* initializer) {
  const std::size_t own_size = sizeof(Options);
  if (given == nullptr) return {};
  const std::size_t given_size = given->struct_size;
  if (given_size < 2 * sizeof(std::uint32_t)) {
    return fail(DDL_ERROR_INVALID_ARGUMENT, "options: struct_size is " + std::to_string(given_size) +
                                                "; initialise the struct with " + initializer);
  }
  std::memcpy(&options, given, std::min(given_size, own_size));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (given_size > own_size &&
      !std::all_of(bytes + own_size, bytes + given_size, [](unsigned char byte) { return byte == 0; })) {
    return fail(DDL_ERROR_UNSUPPORTED, std::string("options: a field is set that libddl ") + ddl_version() +
                                           " does not know; the program was compiled for a newer one");
  }
  if (options.reserved != 0) {
    return fail(DDL_ERROR_INVALID_ARGUMENT,
                std::string("options: reserved is not 0; initialise the struct with ") + initializer);
  }
  if constexpr (requires { options.timeout_seconds; }) {
    if (!std::isfinite(options.timeout_seconds) || options.timeout_seconds < 0) {
      return fail(DDL_ERROR_INVALID_ARGUMENT,
                  "options: timeout_seconds is not a number of seconds, 0 or above");
    }
  }
  return {};
}

}  // namespace ddl::runtime

/// Owned by the program between ddl_init() and ddl_finalize(). Tests create contexts directly, several per process.
struct ddl_context {
  std::unique_ptr<ddl::runtime::Context> context;
  /// Made by ddl_init(), which allows one per process.
  bool is_the_process_context = false;
};

namespace ddl::runtime {

/// The failure of a call that names a process set that does not exist.
Failure no_set(std::uint64_t id);
/// A call with its buffers, as a C function is given them.
inline Request request_of(const Call& call, const void* send, void* recv) {
  Request request;
  request.call = call;
  request.send = static_cast<const std::byte*>(send);
  request.recv = static_cast<std::byte*>(recv);
  return request;
}
/// Completes it: with the type of this version for the one that the caller names, and with the scales of the options. An
/// error if type or operation does not exist.
Outcome complete_call(Request& request, double prescale, double postscale);
/// The process set that a caller names. An error if there is no context or no such set.
tl::expected<std::shared_ptr<ProcessSet>, Failure> set_of(const ddl_context* context, std::uint64_t id);

/// For ddl_has_feature() and ddl_mpi_library(): which MPI executes the collectives of this process's context;
/// null: none.
void note_process_mpi(const MpiWorld* mpi);

}  // namespace ddl::runtime
