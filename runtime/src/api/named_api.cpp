// The C functions of ddl.h for named tensors: they convert and check arguments, and submit to the engine.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/text.h"
#include "runtime/src/api/c_abi.h"
#include "runtime/src/api/handle.h"
#include "runtime/src/backend/device_backend.h"
#include "runtime/src/collective/request.h"
#include "runtime/src/named/engine.h"

namespace {

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

constexpr std::size_t kMaxName = 1024;

/// Where the tensors go, and what all of one call share.
struct Receiver {
  std::shared_ptr<ProcessSet> set;
  std::shared_ptr<Engine> engine;
  ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;

  std::size_t ranks() const { return static_cast<std::size_t>(set->size()); }
};

tl::expected<Receiver, Failure> receiver_of(ddl_context* context, std::uint64_t process_set) {
  Receiver receiver;
  // An engine that a child makes would not notice that it is in one.
  if (context != nullptr && context->context->is_in_forked_child()) return fail(inherited_by_fork());
  DDL_ASSIGN(set, set_of(context, process_set));
  receiver.set = std::move(set);
  receiver.engine = receiver.set->engine();
  return receiver;
}

tl::expected<Receiver, Failure> receiver_of(ddl_context* context, const ddl_async_options* given) {
  ddl_async_options options = DDL_ASYNC_OPTIONS_INIT;
  DDL_TRY(read_options(given, options, "DDL_ASYNC_OPTIONS_INIT"));
  if (options.dimensions > 0 && options.shape == nullptr)
    return fail(DDL_ERROR_INVALID_ARGUMENT, "options: shape is null");
  if (options.zeros_if_joined > 1)
    return fail(DDL_ERROR_INVALID_ARGUMENT, "options: zeros_if_joined is neither 0 nor 1");
  if (options.fails_if_joined > 1)
    return fail(DDL_ERROR_INVALID_ARGUMENT, "options: fails_if_joined is neither 0 nor 1");
  if (options.group != nullptr && options.group_size == 0)
    return fail(DDL_ERROR_INVALID_ARGUMENT, "options: group_size of a group is 0");
  auto receiver = receiver_of(context, options.process_set);
  if (receiver) receiver->options = options;
  return receiver;
}

/// Checks a tensor of which each rank gives its own number of elements, to a result that libddl allocates.
Outcome check_gathered(const Submission& submission, std::uint64_t count) {
  if (submission.result == nullptr) return fail(DDL_ERROR_INVALID_ARGUMENT, "result is null");
  if (submission.send == nullptr && count > 0) return fail(DDL_ERROR_INVALID_ARGUMENT, "send is null");
  *submission.result = nullptr;
  return {};
}

/// Takes the counts of all ranks, or those that this rank sends to each, and checks what one rank can check alone, as for
/// the ordered call with the same buffers.
Outcome take_counts(const Receiver& receiver, Submission& submission, Request request,
                    const uint64_t* counts) {
  const auto sum = [](const auto& list) {
    return std::accumulate(list.begin(), list.end(), std::uint64_t{0});
  };
  TensorTerms& terms = submission.announcement.terms;
  switch (terms.call.kind) {
    case CallKind::kAllgatherv:
      submission.own_count = std::exchange(terms.call.count, 0);
      return check_gathered(submission, submission.own_count);
    case CallKind::kAlltoallv: {
      if (counts == nullptr) return fail(DDL_ERROR_INVALID_ARGUMENT, "send_counts is null");
      auto& send_counts = submission.announcement.send_counts;
      send_counts.assign(counts, counts + receiver.ranks());
      return check_gathered(submission, sum(send_counts));
    }
    case CallKind::kReduceScatter:
      if (counts == nullptr) return fail(DDL_ERROR_INVALID_ARGUMENT, "counts is null");
      terms.counts.assign(counts, counts + receiver.ranks());
      request.counts = terms.counts;
      request.call.count = terms.call.count = sum(terms.counts);
      break;
    default: break;
  }
  return check_request(request, receiver.set->rank(), receiver.set->size());
}

/// A checked submission of the request. counts: null, or one for each rank. result: where an allocated result is stored.
tl::expected<SubmissionPtr, Failure> submission_of(const Receiver& receiver, const char* name,
                                                   Request request, const uint64_t* counts = nullptr,
                                                   void** result = nullptr) {
  const std::string_view text = name == nullptr ? "" : name;
  if (text.empty() || text.size() > kMaxName) {
    return fail(DDL_ERROR_INVALID_ARGUMENT, name == nullptr
                                                ? std::string("name is null")
                                                : "name has " + std::to_string(text.size()) +
                                                      " bytes; it has 1 to " + std::to_string(kMaxName));
  }
  const ddl_async_options& options = receiver.options;
  DDL_TRY(complete_call(request, options.prescale, options.postscale));
  auto submission = std::make_shared<Submission>();
  submission->announcement.name = text;
  TensorTerms& terms = submission->announcement.terms;
  terms.call = request.call;
  terms.zeros_if_joined = has_op(request.call.kind) && options.zeros_if_joined != 0;
  terms.fails_if_joined = options.fails_if_joined != 0;
  if (options.dimensions > 0) terms.shape.assign(options.shape, options.shape + options.dimensions);
  terms.priority = options.priority;
  if (options.group != nullptr) {
    terms.group = options.group;
    terms.group_size = options.group_size;
  }
  submission->send = request.send;
  submission->recv = request.recv;
  submission->result = result;
  submission->recv_counts = request.recv_counts;
  if (options.completed != nullptr) {
    submission->on_completion = [completed = options.completed,
                                 argument = options.argument](const Outcome& outcome) {
      completed(argument, outcome ? DDL_OK : outcome.error().status,
                outcome ? "" : outcome.error().message.c_str());
    };
  }
  DDL_TRY(take_counts(receiver, *submission, request, counts));
  return submission;
}

/// The shape that the options give belongs to this number of elements, where all ranks have the same number.
Outcome check_shape(const TensorTerms& terms) {
  const Call& call = terms.call;
  if (terms.shape.empty() || call.kind == CallKind::kAllgatherv || call.kind == CallKind::kAlltoallv)
    return {};
  std::uint64_t product = 1;
  bool is_too_large = false;
  for (const std::uint64_t extent : terms.shape)
    is_too_large = __builtin_mul_overflow(product, extent, &product) || is_too_large;
  if (!is_too_large && product == call.count) return {};
  return fail(DDL_ERROR_INVALID_ARGUMENT, "options: shape does not have " +
                                              ddl::counted(static_cast<std::int64_t>(call.count), "element"));
}

/// Finds out where the tensor lies, and from when on it may be used.
Outcome place(const Receiver& receiver, Submission& submission) {
  StreamHandle const stream = receiver.options.stream;
  DDL_ASSIGN(place, place_of(submission.send, submission.recv, stream));
  submission.announcement.terms.call.memory = place.memory;
  submission.device = place.device;
  if (place.device == nullptr) return {};
  const CurrentDevice current(*place.device);
  if (!current.status()) return fail(to_failure(current.status().error()));
  DDL_ASSIGN(ready, DeviceEvent::make(*place.device).map_error(to_failure));
  DDL_TRY(place.device->record(ready.get(), stream).map_error(to_failure));
  submission.ready = std::move(ready);
  return {};
}

ddl_status submit(const Receiver& receiver, const std::vector<SubmissionPtr>& submissions,
                  ddl_handle** handles) {
  if (handles == nullptr && receiver.options.completed == nullptr)
    return report(DDL_ERROR_INVALID_ARGUMENT, "handle is null, and options.completed too");
  std::vector<std::unique_ptr<ddl_handle>> made;
  for (std::size_t i = 0; handles != nullptr && i < submissions.size(); ++i)
    made.push_back(
        std::make_unique<ddl_handle>(ddl_handle{receiver.engine, submissions[i], nullptr, nullptr}));
  if (auto submitted = receiver.engine->submit(submissions); !submitted) return report(submitted);
  for (std::size_t i = 0; i < made.size(); ++i) handles[i] = made[i].release();
  return DDL_OK;
}

/// Submits one tensor. counts, result: see submission_of().
ddl_status submit_one(ddl_context* context, const ddl_async_options* options, const char* name,
                      const Request& request, ddl_handle** handle, const uint64_t* counts = nullptr,
                      void** result = nullptr) noexcept try {
  if (handle != nullptr) *handle = nullptr;
  const auto receiver = receiver_of(context, options);
  if (!receiver) return report(receiver.error());
  auto submission = submission_of(*receiver, name, request, counts, result);
  if (!submission) return report(submission.error());
  if (Outcome fits = check_shape((*submission)->terms()); !fits) return report(fits);
  if (Outcome placed = place(*receiver, **submission); !placed) return report(placed);
  return submit(*receiver, {*submission}, handle);
} catch (...) {
  return report_exception();
}

}  // namespace

extern "C" {

ddl_status ddl_allreduce_async(ddl_context* context, const char* name, const void* send, void* recv,
                               uint64_t count, ddl_dtype dtype, ddl_op op, const ddl_async_options* options,
                               ddl_handle** handle) {
  return submit_one(context, options, name,
                    request_of(make_call(CallKind::kAllreduce, count, dtype, op), send, recv), handle);
}

ddl_status ddl_grouped_allreduce_async(ddl_context* context, const ddl_tensor* tensors, uint64_t count,
                                       ddl_dtype dtype, ddl_op op, const ddl_async_options* options,
                                       ddl_handle** handles) try {
  if (count > 0 && tensors == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "tensors is null");
  if (handles != nullptr) std::fill_n(handles, count, nullptr);
  const auto receiver = receiver_of(context, options);
  if (!receiver) return report(receiver.error());
  std::vector<SubmissionPtr> submissions;
  for (const ddl_tensor& tensor : std::span(tensors, count)) {
    const Call call = make_call(CallKind::kAllreduce, tensor.count, dtype, op);
    auto submission = submission_of(*receiver, tensor.name, request_of(call, tensor.send, tensor.recv));
    if (!submission) return report(submission.error());
    if (Outcome placed = place(*receiver, **submission); !placed) return report(placed);
    submissions.push_back(*std::move(submission));
  }
  return submit(*receiver, submissions, handles);
} catch (...) {
  return report_exception();
}

ddl_status ddl_allgather_async(ddl_context* context, const char* name, const void* send, void* recv,
                               uint64_t count, ddl_dtype dtype, const ddl_async_options* options,
                               ddl_handle** handle) {
  return submit_one(context, options, name,
                    request_of(make_call(CallKind::kAllgather, count, dtype), send, recv), handle);
}

ddl_status ddl_allgatherv_async(ddl_context* context, const char* name, const void* send, uint64_t count,
                                void** result, uint64_t* recv_counts, ddl_dtype dtype,
                                const ddl_async_options* options, ddl_handle** handle) {
  Request request = request_of(make_call(CallKind::kAllgatherv, count, dtype), send, nullptr);
  request.recv_counts = recv_counts;
  return submit_one(context, options, name, request, handle, nullptr, result);
}

ddl_status ddl_broadcast_async(ddl_context* context, const char* name, void* buffer, uint64_t count,
                               ddl_dtype dtype, int32_t root, const ddl_async_options* options,
                               ddl_handle** handle) {
  const Call call = make_call(CallKind::kBroadcast, count, dtype, DDL_SUM, root);
  return submit_one(context, options, name, request_of(call, buffer, buffer), handle);
}

ddl_status ddl_alltoallv_async(ddl_context* context, const char* name, const void* send,
                               const uint64_t* send_counts, void** result, uint64_t* recv_counts,
                               ddl_dtype dtype, const ddl_async_options* options, ddl_handle** handle) {
  Request request = request_of(make_call(CallKind::kAlltoallv, 0, dtype), send, nullptr);
  request.recv_counts = recv_counts;
  return submit_one(context, options, name, request, handle, send_counts, result);
}

ddl_status ddl_reduce_scatter_async(ddl_context* context, const char* name, const void* send, void* recv,
                                    const uint64_t* counts, ddl_dtype dtype, ddl_op op,
                                    const ddl_async_options* options, ddl_handle** handle) {
  const Call call = make_call(CallKind::kReduceScatter, 0, dtype, op);
  return submit_one(context, options, name, request_of(call, send, recv), handle, counts);
}

ddl_status ddl_wait(ddl_handle* handle) try {
  if (handle == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "handle is null");
  const std::unique_ptr<ddl_handle> owned(handle);
  return report(handle->wait());
} catch (...) {
  return report_exception();
}

ddl_status ddl_wait_all(ddl_handle* const* handles, uint64_t count) try {
  if (count > 0 && handles == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "handles is null");
  Outcome first;
  for (ddl_handle* const handle : std::span(handles, count)) {
    if (handle == nullptr) continue;
    const std::unique_ptr<ddl_handle> owned(handle);
    if (Outcome waited = handle->wait(); !waited && first) first = std::move(waited);
  }
  return report(first);
} catch (...) {
  return report_exception();
}

ddl_status ddl_test(ddl_handle* handle, int32_t* done) try {
  if (handle == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "handle is null");
  if (done == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "done is null");
  *done = 0;
  const auto is_complete = handle->test();
  if (!is_complete) return report(is_complete.error());
  *done = *is_complete ? 1 : 0;
  return DDL_OK;
} catch (...) {
  return report_exception();
}

ddl_status ddl_join(ddl_context* context, uint64_t process_set, int32_t* last_rank) try {
  const auto receiver = receiver_of(context, process_set);
  if (!receiver) return report(receiver.error());
  int last = -1;
  const Outcome joined = receiver->set->join(*receiver->engine, last);
  if (joined && last_rank != nullptr) *last_rank = last;
  return report(joined);
} catch (...) {
  return report_exception();
}

ddl_status ddl_step(ddl_context* context, uint64_t process_set) try {
  const auto receiver = receiver_of(context, process_set);
  if (!receiver) return report(receiver.error());
  return report(receiver->engine->end_step());
} catch (...) {
  return report_exception();
}

}  // extern "C"
