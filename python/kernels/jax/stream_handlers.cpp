// The handlers for arrays in memory of a GPU: ordered calls of libddl on XLA's stream. XLA runs a program's calls on
// one thread for each device, in the program's order, which is the same on all ranks that compile the same program.
#include <string>
#include <utility>

#include "python/kernels/jax/call_frame.h"
#include "python/kernels/jax/context.h"

namespace ddl::jax {
namespace {

ddl_status call_part(ddl_context* context, const Request& request, const Part& part,
                     const ddl_call_options& options) {
  const auto op = static_cast<ddl_op>(request.op);
  const std::int32_t ranks = ddl_process_set_size(context, request.process_set);
  switch (request.kind) {
    case Kind::kAllreduce:
      return ddl_allreduce(context, part.send, part.recv, part.send_count, part.dtype, op, &options);
    case Kind::kBroadcast:
      // XLA lets the result be the argument (input_output_aliases).
      return ddl_broadcast(context, part.recv, part.send_count, part.dtype,
                           static_cast<std::int32_t>(request.root), &options);
    case Kind::kReduceScatter:
      return ddl_reduce_scatter(context, part.send, part.recv, scattered_counts(part, ranks).data(),
                                part.dtype, op, &options);
    case Kind::kAllgather:
      return ddl_allgather(context, part.send, part.recv, part.send_count, part.dtype, &options);
    case Kind::kAlltoall: break;
  }
  return ddl_alltoall(context, part.send, part.recv, part.send_count / static_cast<std::uint64_t>(ranks),
                      part.dtype, &options);
}

xla::Error* execute_on_stream(xla::CallFrame& frame, Kind kind) {
  if (is_question(frame, nullptr)) return nullptr;
  const xla::Api& api = *frame.api;
  xla::StreamGetArguments stream = {sizeof stream, nullptr, frame.context, nullptr};
  if (xla::Error* const problem = api.stream_get(&stream)) return problem;
  const Joined here = joined();
  if (here.context == nullptr) return error_of(api, DDL_ERROR_ABORTED, kNotJoined);
  const Request request = request_of(frame, kind);
  const std::string problem = problem_with(request, here.context);
  if (!problem.empty()) return error_of(api, DDL_ERROR_INVALID_ARGUMENT, problem);
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.process_set = request.process_set;
  options.prescale = request.prescale;
  options.postscale = request.postscale;
  options.stream = stream.stream;
  for (const Part& part : request.parts)
    if (const ddl_status status = call_part(here.context, request, part, options); status != DDL_OK)
      return error_of(api, status, ddl_last_error());
  return nullptr;
}

}  // namespace
}  // namespace ddl::jax

using ddl::jax::Kind;
namespace xla = ddl::jax::xla;

extern "C" DDL_API xla::Error* ddl_jax_stream_allreduce(xla::CallFrame* frame) {
  return ddl::jax::execute_on_stream(*frame, Kind::kAllreduce);
}
extern "C" DDL_API xla::Error* ddl_jax_stream_allgather(xla::CallFrame* frame) {
  return ddl::jax::execute_on_stream(*frame, Kind::kAllgather);
}
extern "C" DDL_API xla::Error* ddl_jax_stream_broadcast(xla::CallFrame* frame) {
  return ddl::jax::execute_on_stream(*frame, Kind::kBroadcast);
}
extern "C" DDL_API xla::Error* ddl_jax_stream_alltoall(xla::CallFrame* frame) {
  return ddl::jax::execute_on_stream(*frame, Kind::kAlltoall);
}
extern "C" DDL_API xla::Error* ddl_jax_stream_reduce_scatter(xla::CallFrame* frame) {
  return ddl::jax::execute_on_stream(*frame, Kind::kReduceScatter);
}
