// The C functions of ddl.h for messages: they convert and check arguments, and submit to the engine.
#include <memory>

#include "runtime/src/api/c_abi.h"
#include "runtime/src/api/handle.h"
#include "runtime/src/backend/device_backend.h"
#include "runtime/src/collective/request.h"

namespace {

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

/// Where the other rank of a message is, and its tag, as the program gives them.
struct Envelope {
  bool sends = false;
  std::int32_t peer = 0;
  std::int32_t tag = 0;
};

Outcome check(const Envelope& envelope, int size) {
  const auto [sends, peer, tag] = envelope;
  const std::string name = sends ? "to " : "from ";
  if ((peer < 0 || peer >= size) && (sends || peer != DDL_ANY_RANK)) {
    return fail(DDL_ERROR_INVALID_ARGUMENT, name + std::to_string(peer) + " is not a rank of 0 to " +
                                                std::to_string(size - 1) +
                                                (sends ? "" : ", or DDL_ANY_RANK"));
  }
  if (tag < 0 && (sends || tag != DDL_ANY_TAG)) {
    return fail(DDL_ERROR_INVALID_ARGUMENT,
                "tag " + std::to_string(tag) + " is below 0" + (sends ? "" : ", and not DDL_ANY_TAG"));
  }
  return {};
}

tl::expected<MessagePtr, Failure> message_of(const ProcessSet& set, const ddl_call_options& options,
                                             const Envelope& envelope, void* buffer, uint64_t count,
                                             ddl_dtype dtype, double default_seconds) {
  DDL_TRY(check(envelope, set.size()));
  Request request = request_of(make_call(CallKind::kTransfer, count, dtype), buffer, buffer);
  DDL_TRY(complete_call(request, options.prescale, options.postscale));
  DDL_TRY(check_request(request, set.rank(), set.size()));
  DDL_ASSIGN(place, place_of(buffer, nullptr, options.stream));
  if (place.device != nullptr) {
    return fail(
        DDL_ERROR_UNSUPPORTED,
        "the buffer of a message lies on a GPU: copy it to CPU memory, or use ddl_send() and ddl_recv()");
  }
  auto message = std::make_shared<Message>();
  message->sends = envelope.sends;
  message->set = set.membership().generation;
  message->peer = envelope.peer < 0 ? envelope.peer : set.job_ranks()[envelope.peer];
  message->tag = envelope.tag;
  message->buffer = static_cast<std::byte*>(buffer);
  message->bytes = count * known_element_size(request.call.dtype);
  message->dtype = request.call.dtype;
  message->count = count;
  message->timeout_seconds = options.timeout_seconds > 0 ? options.timeout_seconds : default_seconds;
  return message;
}

ddl_status submit(ddl_context* context, const ddl_call_options* given, const Envelope& envelope, void* buffer,
                  uint64_t count, ddl_dtype dtype, int32_t* source, ddl_handle** handle) noexcept try {
  if (handle == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "handle is null");
  *handle = nullptr;
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  if (auto read = read_options(given, options, "DDL_CALL_OPTIONS_INIT"); !read) return report(read);
  if (context != nullptr && context->context->is_in_forked_child()) return report(inherited_by_fork());
  const auto set = set_of(context, options.process_set);
  if (!set) return report(set.error());
  auto message =
      message_of(**set, options, envelope, buffer, count, dtype, context->context->timeout_seconds());
  if (!message) return report(message.error());
  if (envelope.peer == DDL_ANY_RANK) {
    (*message)->source = source;
    (*message)->job_ranks = (*set)->job_ranks();
  } else if (source != nullptr) {
    *source = envelope.peer;
  }
  const std::shared_ptr<MessageEngine> messages = context->context->messages();
  auto made = std::make_unique<ddl_handle>(ddl_handle{nullptr, nullptr, messages, *message});
  if (Outcome submitted = messages->submit(*message); !submitted) return report(submitted);
  *handle = made.release();
  return DDL_OK;
} catch (...) {
  return report_exception();
}

}  // namespace

extern "C" {

ddl_status ddl_send_async(ddl_context* context, const void* buffer, uint64_t count, ddl_dtype dtype,
                          int32_t to, int32_t tag, const ddl_call_options* options, ddl_handle** handle) {
  return submit(context, options, {true, to, tag}, const_cast<void*>(buffer), count, dtype, nullptr, handle);
}

ddl_status ddl_recv_async(ddl_context* context, void* buffer, uint64_t count, ddl_dtype dtype, int32_t from,
                          int32_t tag, const ddl_call_options* options, int32_t* source,
                          ddl_handle** handle) {
  return submit(context, options, {false, from, tag}, buffer, count, dtype, source, handle);
}

}  // extern "C"
