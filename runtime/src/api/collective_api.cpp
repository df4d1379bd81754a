// The C functions of ddl.h that are calls of a process set: they only convert and check arguments.
#include <span>

#include "runtime/src/api/c_abi.h"
#include "runtime/src/backend/device_backend.h"
#include "runtime/src/collective/request.h"

namespace {

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

/// The options of one call.
Outcome read_call_options(const ddl_call_options* given, ddl_call_options& options) {
  return read_options(given, options, "DDL_CALL_OPTIONS_INIT");
}

/// Which side of a transfer this rank is.
enum class Side { kNone, kSends, kReceives };

/// Checks the other rank of a transfer.
Outcome check_peer(Side side, int peer, const ProcessSet& set) {
  const char* const name = side == Side::kSends ? "to" : "from";
  if (peer < 0 || peer >= set.size()) {
    return fail(DDL_ERROR_INVALID_ARGUMENT, std::string(name) + " " + std::to_string(peer) +
                                                " is not a rank of 0 to " + std::to_string(set.size() - 1));
  }
  if (peer == set.rank()) {
    return fail(DDL_ERROR_INVALID_ARGUMENT,
                std::string(name) + " " + std::to_string(peer) + " is this rank itself");
  }
  return {};
}

/// Takes the counts of all ranks, or those that this rank sends to each.
void take_counts(Request& request, std::span<const uint64_t> counts) {
  request.counts = counts;
  if (request.call.kind == CallKind::kAlltoallv) return;
  request.call.counts = digest_of(counts) | 1;
  for (const uint64_t count : counts) request.call.count += count;
}

/// Completes the request, checks everything, then makes the call. counts: null, or one for each rank.
ddl_status collective(ddl_context* handle, const ddl_call_options* given, Request request,
                      const uint64_t* counts = nullptr, Side side = Side::kNone) noexcept try {
  if (handle == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  if (auto read = read_call_options(given, options); !read) return report(read);
  const auto set = handle->context->set(options.process_set);
  if (!set) return report(no_set(options.process_set));
  if (auto completed = complete_call(request, options.prescale, options.postscale); !completed)
    return report(completed);
  if (counts != nullptr) take_counts(request, {counts, static_cast<size_t>(set->size())});
  request.job_ranks = set->job_ranks();
  if (side != Side::kNone) {
    if (auto checked = check_peer(side, request.peer, *set); !checked) return report(checked);
    request.call.root = side == Side::kSends ? set->rank() : request.peer;
  }
  if (auto checked = check_request(request, set->rank(), set->size()); !checked) return report(checked);
  if (auto placed = place_buffers(request, set->rank(), set->size(), options.stream); !placed)
    return report(placed);
  return report(handle->context->run(*set, request, options.timeout_seconds));
} catch (...) {
  return report_exception();
}

bool has_defaults(const ddl_call_options* options) {
  if (options == nullptr) return true;
  return options->struct_size == sizeof *options && options->reserved == 0 &&
         options->process_set == DDL_WORLD && options->timeout_seconds == 0 && options->stream == nullptr &&
         options->prescale == 1 && options->postscale == 1;
}

/// The same for a call that programs often repeat with small buffers: then nothing of it is checked again.
ddl_status often_small(ddl_context* handle, const ddl_call_options* options, const Call& call,
                       const void* send, void* recv, const uint64_t* counts = nullptr) noexcept try {
  if (handle != nullptr && has_defaults(options)) {
    Outcome outcome;
    if (handle->context->repeat(call, counts, send, recv, outcome)) return outcome ? DDL_OK : report(outcome);
  }
  return collective(handle, options, request_of(call, send, recv), counts);
} catch (...) {
  return report_exception();
}

/// buffer is read by the sender and written by the receiver.
ddl_status transfer(ddl_context* context, const ddl_call_options* options, Side side, void* buffer,
                    uint64_t count, ddl_dtype dtype, int32_t peer) noexcept {
  Request request = request_of(make_call(CallKind::kTransfer, count, dtype), buffer, buffer);
  request.peer = peer;
  return collective(context, options, request, nullptr, side);
}

}  // namespace

extern "C" {

ddl_status ddl_allreduce(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                         ddl_op op, const ddl_call_options* options) {
  return often_small(context, options, make_call(CallKind::kAllreduce, count, dtype, op), send, recv);
}

ddl_status ddl_reduce(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                      ddl_op op, int32_t root, const ddl_call_options* options) {
  return collective(context, options,
                    request_of(make_call(CallKind::kReduce, count, dtype, op, root), send, recv));
}

ddl_status ddl_reduce_scatter(ddl_context* context, const void* send, void* recv, const uint64_t* counts,
                              ddl_dtype dtype, ddl_op op, const ddl_call_options* options) {
  return often_small(context, options, make_call(CallKind::kReduceScatter, 0, dtype, op), send, recv, counts);
}

ddl_status ddl_scan(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                    ddl_op op, const ddl_call_options* options) {
  return collective(context, options, request_of(make_call(CallKind::kScan, count, dtype, op), send, recv));
}

ddl_status ddl_broadcast(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype, int32_t root,
                         const ddl_call_options* options) {
  return often_small(context, options, make_call(CallKind::kBroadcast, count, dtype, DDL_SUM, root), buffer,
                     buffer);
}

ddl_status ddl_allgather(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                         const ddl_call_options* options) {
  return often_small(context, options, make_call(CallKind::kAllgather, count, dtype), send, recv);
}

ddl_status ddl_allgatherv(ddl_context* context, const void* send, void* recv, const uint64_t* counts,
                          ddl_dtype dtype, const ddl_call_options* options) {
  return collective(context, options, request_of(make_call(CallKind::kAllgatherv, 0, dtype), send, recv),
                    counts);
}

ddl_status ddl_gather(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                      int32_t root, const ddl_call_options* options) {
  return collective(context, options,
                    request_of(make_call(CallKind::kGather, count, dtype, DDL_SUM, root), send, recv));
}

ddl_status ddl_scatter(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                       int32_t root, const ddl_call_options* options) {
  return collective(context, options,
                    request_of(make_call(CallKind::kScatter, count, dtype, DDL_SUM, root), send, recv));
}

ddl_status ddl_alltoall(ddl_context* context, const void* send, void* recv, uint64_t count, ddl_dtype dtype,
                        const ddl_call_options* options) {
  return often_small(context, options, make_call(CallKind::kAlltoall, count, dtype), send, recv);
}

ddl_status ddl_alltoallv(ddl_context* context, const void* send, const uint64_t* send_counts, void* recv,
                         uint64_t recv_capacity, uint64_t* recv_counts, ddl_dtype dtype,
                         const ddl_call_options* options) {
  Request request = request_of(make_call(CallKind::kAlltoallv, 0, dtype), send, recv);
  request.recv_capacity = recv_capacity;
  request.recv_counts = recv_counts;
  return collective(context, options, request, send_counts);
}

ddl_status ddl_send(ddl_context* context, const void* buffer, uint64_t count, ddl_dtype dtype, int32_t to,
                    const ddl_call_options* options) {
  return transfer(context, options, Side::kSends, const_cast<void*>(buffer), count, dtype, to);
}

ddl_status ddl_recv(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype, int32_t from,
                    const ddl_call_options* options) {
  return transfer(context, options, Side::kReceives, buffer, count, dtype, from);
}

ddl_status ddl_barrier(ddl_context* context, const ddl_call_options* options) {
  return collective(context, options,
                    request_of(make_call(CallKind::kBarrier, 0, DDL_INT32), nullptr, nullptr));
}

}  // extern "C"
