// The C functions of ddl.h: arguments in, exceptions and errors caught, everything else elsewhere.
#include <atomic>
#include <exception>
#include <new>

#include "contract/version.h"
#include "net/job_key.h"
#include "runtime/src/api/handle.h"
#include "runtime/src/api/last_error.h"
#include "runtime/src/api/options.h"
#include "runtime/src/api/validate.h"
#include "runtime/src/bootstrap/bootstrap_list.h"
#include "runtime/src/transport/shared_memory.h"
#include "runtime/src/transport/tcp/tcp_transport.h"

namespace {

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

// The process is one rank of one job at a time, as its launcher sees it: the one place where that is global.
std::atomic<bool> process_has_context{false};
std::atomic<std::uint32_t> generations{0};

/// Runs body, which returns a status, and lets nothing out.
template <class Body>
ddl_status guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report(DDL_ERROR_SYSTEM, "out of memory");
  } catch (const std::exception& error) {
    return report(DDL_ERROR_INTERNAL, error.what());
  } catch (...) {
    return report(DDL_ERROR_INTERNAL, "an unknown exception");
  }
}

Outcome init(const ddl_init_options* given, ddl_context** context) {
  ddl_init_options options = DDL_INIT_OPTIONS_INIT;
  if (auto read = read_options(given, options, "DDL_INIT_OPTIONS_INIT"); !read) return read;
  auto settings = Settings::read(process_environment());
  if (!settings) return tl::unexpected(to_failure(settings.error()));
  if (options.timeout_seconds > 0) settings->timeout_seconds = options.timeout_seconds;
  // Marks it close-on-exec on every rank, also on those that do not need the key. Who does reads it again, and tells if
  // it cannot be read.
  if (settings->job_key_fd) (void)ddl::net::JobKey::from_memfd(*settings->job_key_fd);

  auto bootstrap = join_job(bootstrap_list(), *settings, ++generations);
  if (!bootstrap) return tl::unexpected(to_failure(bootstrap.error()));
  FaultInjector fault(settings->fault, (*bootstrap)->membership().rank);
  SharedMemoryTransport memory(fault);
  TcpSettings tcp_settings;
  tcp_settings.interfaces = settings->network_interfaces;
  tcp_settings.job_key_fd = settings->job_key_fd;
  TcpTransport tcp(std::move(tcp_settings), fault);
  auto joined = Context::join(*settings, *std::move(bootstrap), {memory, tcp}, fault);
  if (!joined) return tl::unexpected(to_failure(joined.error()));
  *context = new ddl_context{*std::move(joined), true};
  return {};
}

/// The options of one call; those that this version does not offer are refused.
Outcome read_call_options(const ddl_call_options* given, ddl_call_options& options) {
  if (auto read = read_options(given, options, "DDL_CALL_OPTIONS_INIT"); !read) return read;
  if (options.process_set != DDL_WORLD) {
    return failed(DDL_ERROR_UNSUPPORTED, "process set " + std::to_string(options.process_set) +
                                             " does not exist; this version has DDL_WORLD only");
  }
  if (options.stream != nullptr) {
    return failed(DDL_ERROR_UNSUPPORTED, "stream is not null; this version works on host memory only");
  }
  return {};
}

/// Checks context, options and arguments, then runs collective(tier, deadline) on the context.
template <class Check, class Collective>
ddl_status call(ddl_context* handle, const ddl_call_options* given, Check check,
                Collective collective) noexcept {
  return guarded([&] {
    if (handle == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    if (auto read = read_call_options(given, options); !read) return report(read);
    if (auto checked = check(*handle->context); !checked) return report(checked);
    return report(handle->context->run(options.timeout_seconds, collective));
  });
}

}  // namespace

extern "C" {

ddl_status ddl_init(const ddl_init_options* options, ddl_context** context) {
  return guarded([&] {
    if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
    *context = nullptr;
    if (process_has_context.exchange(true)) {
      return report(DDL_ERROR_INVALID_ARGUMENT,
                    "this process already has a context; finalize it before the next ddl_init()");
    }
    Outcome outcome;
    try {
      outcome = init(options, context);
    } catch (...) {
      process_has_context = false;
      throw;
    }
    if (!outcome) process_has_context = false;
    return report(outcome);
  });
}

ddl_status ddl_finalize(ddl_context* context) {
  return guarded([&] {
    if (context == nullptr) return ddl_status{DDL_OK};
    // The child of a fork has neither the threads nor the place in the job that the destructor would undo.
    if (context->context->is_in_forked_child()) return ddl_status{DDL_OK};
    const Outcome left = context->context->leave();
    if (!left && left.error().status == DDL_ERROR_BUSY) return report(left);
    const bool was_the_process_context = context->is_the_process_context;
    delete context;
    if (was_the_process_context) process_has_context = false;
    return report(left);
  });
}

int32_t ddl_rank(const ddl_context* context) { return context == nullptr ? -1 : context->context->rank(); }
int32_t ddl_size(const ddl_context* context) { return context == nullptr ? -1 : context->context->size(); }
int32_t ddl_local_rank(const ddl_context* context) {
  return context == nullptr ? -1 : context->context->local_rank();
}
int32_t ddl_local_size(const ddl_context* context) {
  return context == nullptr ? -1 : context->context->local_size();
}
int32_t ddl_cross_rank(const ddl_context* context) {
  return context == nullptr ? -1 : context->context->cross_rank();
}
int32_t ddl_cross_size(const ddl_context* context) {
  return context == nullptr ? -1 : context->context->cross_size();
}
const char* ddl_bootstrap_name(const ddl_context* context) {
  return context == nullptr ? "" : context->context->bootstrap_name();
}

ddl_status ddl_allreduce(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                         ddl_op op, const ddl_call_options* options) {
  return call(
      context, options,
      [&](const Context&) {
        return check_allreduce({send, recv, count, dtype}, op);
      },
      [&](OrderedTier& tier, CallDeadline deadline) {
        return tier.allreduce(static_cast<const std::byte*>(send), static_cast<std::byte*>(recv), count,
                              dtype, op, deadline);
      });
}

ddl_status ddl_broadcast(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype, int32_t root,
                         const ddl_call_options* options) {
  return call(
      context, options,
      [&](const Context& self) {
        return check_broadcast({nullptr, buffer, count, dtype}, root, self.size());
      },
      [&](OrderedTier& tier, CallDeadline deadline) {
        return tier.broadcast(static_cast<std::byte*>(buffer), count, dtype, root, deadline);
      });
}

ddl_status ddl_allgather(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                         const ddl_call_options* options) {
  return call(
      context, options,
      [&](const Context& self) {
        return check_allgather({send, recv, count, dtype}, self.rank(), self.size());
      },
      [&](OrderedTier& tier, CallDeadline deadline) {
        return tier.allgather(static_cast<const std::byte*>(send), static_cast<std::byte*>(recv), count,
                              dtype, deadline);
      });
}

ddl_status ddl_barrier(ddl_context* context, const ddl_call_options* options) {
  return call(
      context, options, [](const Context&) { return Outcome{}; },
      [](OrderedTier& tier, CallDeadline deadline) { return tier.barrier(deadline); });
}

const char* ddl_last_error(void) { return last_error(); }

const char* ddl_status_name(ddl_status status) {
  switch (status) {
    case DDL_OK: return "ok";
    case DDL_ERROR_INVALID_ARGUMENT: return "invalid argument";
    case DDL_ERROR_MISMATCH: return "mismatch";
    case DDL_ERROR_BUSY: return "busy";
    case DDL_ERROR_TIMEOUT: return "timeout";
    case DDL_ERROR_PEER_LOST: return "peer lost";
    case DDL_ERROR_ABORTED: return "aborted";
    case DDL_ERROR_BOOTSTRAP: return "bootstrap";
    case DDL_ERROR_UNSUPPORTED: return "unsupported";
    case DDL_ERROR_SYSTEM: return "system";
    case DDL_ERROR_INTERNAL: return "internal";
    default: return "unknown status";
  }
}

const char* ddl_version(void) { return ddl::contract::kVersion; }

}  // extern "C"
