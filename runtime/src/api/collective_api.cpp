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
  Side side = Side::kNone;
  int32_t peer = -1;
};

/// buffer is read by the sender and written by the receiver.
Arguments transfer(Side side, void* buffer, uint64_t count, ddl_dtype dtype, int32_t peer) {
  Arguments arguments{CallKind::kTransfer, buffer, buffer, count, nullptr, dtype};
  arguments.side = side;
  arguments.peer = peer;
  return arguments;
}

/// Checks the other rank of a transfer.
Outcome check_peer(const Arguments& arguments, const ProcessSet& set) {
  const char* const name = arguments.side == Side::kSends ? "to" : "from";
  const int32_t peer = arguments.peer;
  if (peer < 0 || peer >= set.size()) {
    return failed(DDL_ERROR_INVALID_ARGUMENT, std::string(name) + " " + std::to_string(peer) +
                                                  " is not a rank of 0 to " + std::to_string(set.size() - 1));
  }
  if (peer == set.rank()) {
    return failed(DDL_ERROR_INVALID_ARGUMENT,
                  std::string(name) + " " + std::to_string(peer) + " is this rank itself");
  }
  return {};
}

/// Fills the part of a call that must be the same on all ranks.
Outcome describe_call(const Arguments& arguments, const ddl_call_options& options, size_t ranks, Call& call) {
  const auto dtype = known_dtype(arguments.dtype, arguments.op);
  if (!dtype) return tl::unexpected(dtype.error());
  call = make_call(arguments.kind, arguments.count, *dtype);
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
    const auto set = handle->context->set(options.process_set);
    if (!set) return report(no_set(options.process_set));
    Request request;
    const auto ranks = static_cast<size_t>(set->size());
    if (auto described = describe_call(arguments, options, ranks, request.call); !described)
      return report(described);
    request.element_size = element_size(request.call.dtype);
    request.send = static_cast<const std::byte*>(arguments.send);
    request.recv = static_cast<std::byte*>(arguments.recv);
    if (arguments.counts != nullptr) request.counts = {arguments.counts, ranks};
    request.recv_capacity = arguments.recv_capacity;
    request.recv_counts = arguments.recv_counts;
    request.job_ranks = set->job_ranks();
    if (arguments.side != Side::kNone) {
      if (auto checked = check_peer(arguments, *set); !checked) return report(checked);
      request.peer = arguments.peer;
      request.call.root = arguments.side == Side::kSends ? set->rank() : arguments.peer;
    }
    if (auto checked = check_request(request, set->rank(), set->size()); !checked) return report(checked);
    if (auto placed = place_buffers(request, set->rank(), set->size(), options.stream); !placed)
      return report(placed);
    return report(handle->context->run(*set, request, options.timeout_seconds));
  });
}

}  // namespace

extern "C" {

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

ddl_status ddl_send(ddl_context* context, const void* buffer, uint64_t count, ddl_dtype dtype, int32_t to,
                    const ddl_call_options* options) {
  return collective(context, options, transfer(Side::kSends, const_cast<void*>(buffer), count, dtype, to));
}

ddl_status ddl_recv(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype, int32_t from,
                    const ddl_call_options* options) {
  return collective(context, options, transfer(Side::kReceives, buffer, count, dtype, from));
}

ddl_status ddl_barrier(ddl_context* context, const ddl_call_options* options) {
  return collective(context, options, {CallKind::kBarrier});
}

}  // extern "C"
