// ddl_init(), ddl_finalize(), ddl_abort(), the identity of a context, and memory of the shared heap.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>

#include "base/environment.h"
#include "net/job_key.h"
#include "runtime/src/api/c_abi.h"
#include "runtime/src/bootstrap/bootstrap_list.h"
#include "runtime/src/bootstrap/rank_process.h"
#include "runtime/src/common/fork_guard.h"
#include "runtime/src/common/interruption.h"
#include "runtime/src/shm/shared_memory_transport.h"
#include "runtime/src/wire/tcp_transport.h"

namespace {

// The C functions of ddl.h that make and end a context and return its identity.

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

// For its launcher a process is one rank of one job, so it has one context at a time. Only here is this a global.
std::atomic<bool> process_has_context{false};
std::atomic<std::uint64_t> context_fork_count{0};  // of the process that has it
std::atomic<std::uint32_t> generations{0};

/// The environment's settings, and what the options of an elastic join say.
ddl::Result<Settings> read_settings(const ddl::Environment& environment,
                                    const ddl_elastic_join_options& options) {
  DDL_ASSIGN(settings, Settings::read(environment));
  if (options.timeout_seconds > 0) settings.timeout_seconds = options.timeout_seconds;
  settings.join_reason = static_cast<ddl::contract::JoinReason>(options.reason);
  settings.commits = options.commits;
  return settings;
}

Outcome join(Settings settings, const ddl::Environment& environment, ddl_context** context) {
  // Marks the descriptor close-on-exec on every rank, also on those that do not need the key. The transport reads the
  // key again and reports an error if that fails.
  if (settings.job_key_fd) (void)ddl::net::JobKey::from_memfd(*settings.job_key_fd);

  DDL_ASSIGN(claim, RankClaim::make(settings, environment).map_error(to_failure));
  DDL_ASSIGN(bootstrap, join_job(bootstrap_list(), settings, ++generations).map_error(to_failure));
  const FaultInjector fault(settings.fault, bootstrap->membership().rank);
  TcpSettings tcp_settings;
  tcp_settings.interfaces = settings.network_interfaces;
  tcp_settings.job_key_fd = settings.job_key_fd;
  tcp_settings.sockets = settings.sockets_per_peer;
  TransportMaker transports;
  transports.within_host = [](const Membership&, FaultInjector& points) {
    return std::make_unique<SharedMemoryTransport>(points);
  };
  transports.between_hosts = [tcp_settings](const Membership&, FaultInjector& points) {
    return std::make_unique<TcpTransport>(tcp_settings, points);
  };
  DDL_ASSIGN(
      joined,
      Context::join(settings, std::move(bootstrap), std::move(transports), fault).map_error(to_failure));
  claim.has_joined();
  note_process_mpi(joined->mpi().get());
  *context = new ddl_context{std::move(joined), true};
  return {};
}

/// Whether a join has failed because of another rank, or may have: those that are left join again.
bool may_join_again(const Outcome& joined) {
  switch (joined ? DDL_OK : joined.error().status) {
    case DDL_ERROR_TIMEOUT:
    case DDL_ERROR_PEER_LOST:
    case DDL_ERROR_ABORTED:
    case DDL_ERROR_BOOTSTRAP:
    case DDL_ERROR_SYSTEM: return true;
    default: return false;
  }
}

Outcome init(const ddl_elastic_join_options& options, ddl_context** context) {
  const ddl::Environment environment = ddl::process_environment();
  DDL_ASSIGN(settings, read_settings(environment, options).map_error(to_failure));
  for (;;) {
    Outcome joined = join(settings, environment, context);
    if (!settings.elastic || !may_join_again(joined)) return joined;
    // The launcher ends a job that goes on so.
    std::fprintf(stderr, "libddl: joining failed, and this process joins again: %s\n",
                 joined.error().message.c_str());
    settings.join_reason = ddl::contract::JoinReason::kLost;
  }
}

/// Makes the process's context.
ddl_status make_context(const ddl_elastic_join_options& options, ddl_context** context) {
  *context = nullptr;
  if (process_has_context.exchange(true)) {
    if (fork_count() != context_fork_count) return report(fail(inherited_by_fork()));
    return report(DDL_ERROR_INVALID_ARGUMENT,
                  "this process already has a context; finalize it before the next ddl_init()");
  }
  context_fork_count = fork_count();
  Outcome outcome;
  try {
    outcome = init(options, context);
  } catch (...) {
    process_has_context = false;
    throw;
  }
  if (!outcome) process_has_context = false;
  return report(outcome);
}

/// Added to the rank that has an open tensor; more than any change.
constexpr std::int32_t kHasOpenTensor = 1 << 16;

/// Tells all ranks what keeps them from a check. Collective. open: of the rank that has it.
ddl_status report_open_tensor(ddl_context* context, int rank, const std::optional<std::string>& open) {
  std::array<char, 128> name{};
  if (rank == ddl_rank(context) && open) open->copy(name.data(), name.size() - 1);
  const ddl_status status = ddl_broadcast(context, name.data(), name.size(), DDL_UINT8, rank, nullptr);
  if (status != DDL_OK) return status;
  // This rank may end at once, and the others must have the name by then. Whether they still come does not matter.
  (void)ddl_barrier(context, nullptr);
  return report(DDL_ERROR_INVALID_ARGUMENT,
                "rank " + std::to_string(rank) + " has not completed the tensor \"" + name.data() +
                    "\", whose buffer belongs to what would be saved: wait for all tensors before the check");
}

}  // namespace

extern "C" {

ddl_status ddl_init(const ddl_init_options* options, ddl_context** context) try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  ddl_init_options given = DDL_INIT_OPTIONS_INIT;
  if (auto read = read_options(options, given, "DDL_INIT_OPTIONS_INIT"); !read) {
    *context = nullptr;
    return report(read);
  }
  ddl_elastic_join_options join_options = DDL_ELASTIC_JOIN_OPTIONS_INIT;
  join_options.timeout_seconds = given.timeout_seconds;
  return make_context(join_options, context);
} catch (...) {
  return report_exception();
}

ddl_status ddl_elastic_join(const ddl_elastic_join_options* options, ddl_context** context) try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  *context = nullptr;
  ddl_elastic_join_options given = DDL_ELASTIC_JOIN_OPTIONS_INIT;
  if (auto read = read_options(options, given, "DDL_ELASTIC_JOIN_OPTIONS_INIT"); !read) return report(read);
  if (given.reason > DDL_ELASTIC_LOST)
    return report(DDL_ERROR_INVALID_ARGUMENT, "options: there is no reason " + std::to_string(given.reason));
  return make_context(given, context);
} catch (...) {
  return report_exception();
}

int32_t ddl_elastic_generation(const ddl_context* context) {
  return context == nullptr ? -1 : context->context->generation();
}

ddl_status ddl_elastic_check(ddl_context* context, int32_t* change) try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  if (change == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "change is null");
  *change = DDL_ELASTIC_STAYS;
  if (context->context->generation() < 0) return DDL_OK;
  const std::optional<std::string> open = context->context->open_tensor();
  // The pages of this host may have changed at another moment than those of others.
  const std::int32_t own = open ? kHasOpenTensor + ddl_rank(context)
                                : static_cast<std::int32_t>(context->context->pending_change());
  std::int32_t agreed = 0;
  const ddl_status status = ddl_allreduce(context, &own, &agreed, 1, DDL_INT32, DDL_MAX, nullptr);
  if (status != DDL_OK) return status;
  if (agreed >= kHasOpenTensor) return report_open_tensor(context, agreed - kHasOpenTensor, open);
  *change = agreed;
  return DDL_OK;
} catch (...) {
  return report_exception();
}

ddl_status ddl_elastic_finished(ddl_context* context) try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  if (context->context->generation() >= 0) context->context->finish();
  return DDL_OK;
} catch (...) {
  return report_exception();
}

ddl_status ddl_finalize(ddl_context* context) try {
  if (context == nullptr) return DDL_OK;
  // A forked child has neither the threads nor the membership in the job that the destructor would end.
  if (context->context->is_in_forked_child()) return DDL_OK;
  const Outcome left = context->context->leave();
  if (!left && left.error().status == DDL_ERROR_BUSY) return report(left);
  const bool was_the_process_context = context->is_the_process_context;
  delete context;
  if (was_the_process_context) {
    note_process_mpi(nullptr);
    process_has_context = false;
  }
  return report(left);
} catch (...) {
  return report_exception();
}

ddl_status ddl_abort(ddl_context* context, int32_t code, const char* text) try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  if (context->context->is_in_forked_child()) {
    return report(DDL_ERROR_ABORTED, "this context belongs to the parent of process " +
                                         std::to_string(::getpid()) +
                                         "; a child that was forked without exec cannot abort the job");
  }
  // An exit status has 8 bits, and an abort is never a success.
  const int exit_code = (code & 0xFF) == 0 ? 1 : code & 0xFF;
  std::string sentence = text == nullptr ? "" : text;
  std::replace_if(
      sentence.begin(), sentence.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  // A context that a test has made does not end the process.
  context->context->abort(exit_code, sentence, context->is_the_process_context);
  return DDL_OK;
} catch (...) {
  return report_exception();
}

ddl_status ddl_set_interrupt_check(ddl_interrupt_check check, void* argument) {
  interrupt_check() = {check, argument};
  return DDL_OK;
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
const char* ddl_backend_name(const ddl_context* context) {
  return context == nullptr ? "" : ddl::contract::cpu_operations_name(context->context->operations());
}

ddl_status ddl_alloc(ddl_context* context, uint64_t bytes, void** memory) try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  if (memory == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "memory is null");
  return report(context->context->allocate(bytes, *memory));
} catch (...) {
  return report_exception();
}

ddl_status ddl_free(ddl_context* context, void* memory) try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  return report(context->context->free_memory(memory));
} catch (...) {
  return report_exception();
}

}  // extern "C"
