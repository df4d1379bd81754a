// The C functions of ddl.h: arguments in, exceptions and errors caught, everything else elsewhere.
#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <span>
#include <vector>

#include "contract/version.h"
#include "net/job_key.h"
#include "runtime/src/api/handle.h"
#include "runtime/src/api/last_error.h"
#include "runtime/src/api/options.h"
#include "runtime/src/api/validate.h"
#include "runtime/src/bootstrap/bootstrap_list.h"
#include "runtime/src/collective/algorithm.h"
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
  const FaultInjector fault(settings->fault, (*bootstrap)->membership().rank);
  TcpSettings tcp_settings;
  tcp_settings.interfaces = settings->network_interfaces;
  tcp_settings.job_key_fd = settings->job_key_fd;
  tcp_settings.sockets = settings->sockets_per_peer;
  TransportMaker transports;
  transports.within_host = [](const Membership&, FaultInjector& points) {
    return std::make_unique<SharedMemoryTransport>(points);
  };
  transports.between_hosts = [tcp_settings](const Membership&, FaultInjector& points) {
    return std::make_unique<TcpTransport>(tcp_settings, points);
  };
  auto joined = Context::join(*settings, *std::move(bootstrap), std::move(transports), fault);
  if (!joined) return tl::unexpected(to_failure(joined.error()));
  *context = new ddl_context{*std::move(joined), true};
  return {};
}

/// The options of one call; those that this version does not offer are refused.
Outcome read_call_options(const ddl_call_options* given, ddl_call_options& options) {
  if (auto read = read_options(given, options, "DDL_CALL_OPTIONS_INIT"); !read) return read;
  if (options.stream != nullptr) {
    return failed(DDL_ERROR_UNSUPPORTED, "stream is not null; this version works on host memory only");
  }
  return {};
}

Outcome no_such_set(uint64_t id) {
  return failed(DDL_ERROR_INVALID_ARGUMENT,
                "process set " + std::to_string(id) + " does not exist, or this rank is not in it");
}

/// A collective as the C functions are given it.
struct Arguments {
  CallKind kind = CallKind::kNone;
  const void* send = nullptr;
  void* recv = nullptr;
  uint64_t count = 0;
  const uint64_t* counts = nullptr;
  ddl_dtype dtype = DDL_INT32;
  ddl_op op = DDL_SUM;
  int32_t root = 0;
  uint64_t recv_capacity = 0;
  uint64_t* recv_counts = nullptr;
};

/// What everybody must call alike.
Outcome describe_call(const Arguments& arguments, const ddl_call_options& options, size_t ranks, Call& call) {
  // They are compared as bytes, so what does not fit into one is refused here.
  constexpr int32_t kMost = UINT8_MAX;
  if (arguments.dtype < 0 || arguments.dtype > kMost) {
    return failed(DDL_ERROR_INVALID_ARGUMENT, "dtype " + std::to_string(arguments.dtype) + " does not exist");
  }
  if (arguments.op < 0 || arguments.op > kMost) {
    return failed(DDL_ERROR_INVALID_ARGUMENT, "op " + std::to_string(arguments.op) + " does not exist");
  }
  call = make_call(arguments.kind, arguments.count, arguments.dtype);
  call.root = arguments.root;
  if (has_op(arguments.kind)) {
    call.op = static_cast<std::uint8_t>(arguments.op);
    call.prescale = options.prescale;
    call.postscale = options.postscale;
  }
  const bool counts_are_everybodys =
      arguments.kind == CallKind::kReduceScatter || arguments.kind == CallKind::kAllgatherv;
  if (counts_are_everybodys && arguments.counts != nullptr) {
    const std::span<const uint64_t> counts(arguments.counts, ranks);
    call.counts = digest_of(counts) | 1;
    for (const uint64_t count : counts) call.count += count;
  }
  return {};
}

/// Checks everything, then makes the call.
ddl_status collective(ddl_context* handle, const ddl_call_options* given,
                      const Arguments& arguments) noexcept {
  return guarded([&] {
    if (handle == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    if (auto read = read_call_options(given, options); !read) return report(read);
    const std::shared_ptr<ProcessSet> set = handle->context->set(options.process_set);
    if (!set) return report(no_such_set(options.process_set));
    Request request;
    const auto ranks = static_cast<size_t>(set->size());
    if (auto described = describe_call(arguments, options, ranks, request.call); !described)
      return report(described);
    request.send = static_cast<const std::byte*>(arguments.send);
    request.recv = static_cast<std::byte*>(arguments.recv);
    if (arguments.counts != nullptr) request.counts = {arguments.counts, ranks};
    request.recv_capacity = arguments.recv_capacity;
    request.recv_counts = arguments.recv_counts;
    request.job_ranks = set->job_ranks();
    if (auto checked = check_request(request, set->rank(), set->size()); !checked) return report(checked);
    return report(handle->context->run(*set, request, options.timeout_seconds));
  });
}

/// Runs make(parent, id), which makes a process set.
template <class Make>
ddl_status make_set(ddl_context* handle, uint64_t parent, uint64_t* process_set, Make make) noexcept {
  return guarded([&] {
    if (handle == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
    if (process_set == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "process_set is null");
    *process_set = DDL_NO_PROCESS_SET;
    const std::shared_ptr<ProcessSet> set = handle->context->set(parent);
    if (!set) return report(no_such_set(parent));
    return report(make(*set));
  });
}

/// A list of ranks is one: not empty, each there once.
Outcome check_list(std::span<const int32_t> list, int size) {
  if (list.empty()) return failed(DDL_ERROR_INVALID_ARGUMENT, "count: a process set has one rank at least");
  std::vector<bool> seen(static_cast<size_t>(size), false);
  for (const int32_t rank : list) {
    if (rank < 0 || rank >= size) {
      return failed(DDL_ERROR_INVALID_ARGUMENT,
                    "ranks: " + std::to_string(rank) + " is not a rank of 0 to " + std::to_string(size - 1));
    }
    if (seen[static_cast<size_t>(rank)]) {
      return failed(DDL_ERROR_INVALID_ARGUMENT, "ranks: " + std::to_string(rank) + " is there twice");
    }
    seen[static_cast<size_t>(rank)] = true;
  }
  return {};
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
  return collective(context, options, {CallKind::kAllreduce, send, recv, count, nullptr, dtype, op});
}

ddl_status ddl_reduce(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                      ddl_op op, int32_t root, const ddl_call_options* options) {
  return collective(context, options, {CallKind::kReduce, send, recv, count, nullptr, dtype, op, root});
}

ddl_status ddl_reduce_scatter(ddl_context* context, const void* send, void* recv, const uint64_t* counts,
                              ddl_dtype dtype, ddl_op op, const ddl_call_options* options) {
  return collective(context, options, {CallKind::kReduceScatter, send, recv, 0, counts, dtype, op});
}

ddl_status ddl_scan(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                    ddl_op op, const ddl_call_options* options) {
  return collective(context, options, {CallKind::kScan, send, recv, count, nullptr, dtype, op});
}

ddl_status ddl_broadcast(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype, int32_t root,
                         const ddl_call_options* options) {
  return collective(context, options,
                    {CallKind::kBroadcast, buffer, buffer, count, nullptr, dtype, DDL_SUM, root});
}

ddl_status ddl_allgather(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                         const ddl_call_options* options) {
  return collective(context, options, {CallKind::kAllgather, send, recv, count, nullptr, dtype});
}

ddl_status ddl_allgatherv(ddl_context* context, const void* send, void* recv, const uint64_t* counts,
                          ddl_dtype dtype, const ddl_call_options* options) {
  return collective(context, options, {CallKind::kAllgatherv, send, recv, 0, counts, dtype});
}

ddl_status ddl_gather(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                      int32_t root, const ddl_call_options* options) {
  return collective(context, options, {CallKind::kGather, send, recv, count, nullptr, dtype, DDL_SUM, root});
}

ddl_status ddl_scatter(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                       int32_t root, const ddl_call_options* options) {
  return collective(context, options, {CallKind::kScatter, send, recv, count, nullptr, dtype, DDL_SUM, root});
}

ddl_status ddl_alltoall(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                        const ddl_call_options* options) {
  return collective(context, options, {CallKind::kAlltoall, send, recv, count, nullptr, dtype});
}

ddl_status ddl_alltoallv(ddl_context* context, const void* send, const uint64_t* send_counts, void* recv,
                         uint64_t recv_capacity, uint64_t* recv_counts, ddl_dtype dtype,
                         const ddl_call_options* options) {
  return collective(
      context, options,
      {CallKind::kAlltoallv, send, recv, 0, send_counts, dtype, DDL_SUM, 0, recv_capacity, recv_counts});
}

ddl_status ddl_barrier(ddl_context* context, const ddl_call_options* options) {
  return collective(context, options, {CallKind::kBarrier});
}

ddl_status ddl_process_set_create(ddl_context* context, const int32_t* ranks, int32_t count,
                                  uint64_t* process_set) {
  return make_set(context, DDL_WORLD, process_set, [&](ProcessSet& world) -> Outcome {
    if (count > 0 && ranks == nullptr) return failed(DDL_ERROR_INVALID_ARGUMENT, "ranks is null");
    const std::span<const int32_t> list(ranks, static_cast<size_t>(std::max(count, 0)));
    if (auto checked = check_list(list, world.size()); !checked) return checked;
    return context->context->make_set(world, list, *process_set);
  });
}

ddl_status ddl_process_set_split(ddl_context* context, uint64_t parent, int32_t color, int32_t key,
                                 uint64_t* process_set) {
  return make_set(context, parent, process_set, [&](ProcessSet& set) {
    return context->context->split_set(set, {color, key}, *process_set);
  });
}

ddl_status ddl_process_set_free(ddl_context* context, uint64_t process_set) {
  return guarded([&] {
    if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
    return report(context->context->free_set(process_set));
  });
}

ddl_status ddl_alloc(ddl_context* context, uint64_t bytes, void** memory) {
  return guarded([&] {
    if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
    if (memory == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "memory is null");
    return report(context->context->allocate(bytes, *memory));
  });
}

ddl_status ddl_free(ddl_context* context, void* memory) {
  return guarded([&] {
    if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
    return report(context->context->free_memory(memory));
  });
}

int32_t ddl_process_set_rank(const ddl_context* context, uint64_t process_set) {
  const auto set = context == nullptr ? nullptr : context->context->set(process_set);
  return set ? set->rank() : -1;
}
int32_t ddl_process_set_size(const ddl_context* context, uint64_t process_set) {
  const auto set = context == nullptr ? nullptr : context->context->set(process_set);
  return set ? set->size() : -1;
}
ddl_status ddl_process_set_ranks(const ddl_context* context, uint64_t process_set, int32_t* ranks) {
  return guarded([&] {
    if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
    if (ranks == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "ranks is null");
    const auto set = context->context->set(process_set);
    if (!set) return report(no_such_set(process_set));
    std::copy(set->job_ranks().begin(), set->job_ranks().end(), ranks);
    return ddl_status{DDL_OK};
  });
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

const char* ddl_algorithm_table(void) {
  static const std::string kTable = explain_choices();
  return kTable.c_str();
}

const char* ddl_version(void) { return ddl::contract::kVersion; }

}  // extern "C"
