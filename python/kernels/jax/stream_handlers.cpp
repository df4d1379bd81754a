// The handler for arrays in memory of a GPU: ordered calls of libddl on XLA's stream. XLA runs a program's calls on
// one thread for each device, in the program's order, which is the same on all ranks that compile the same program.
#include "python/kernels/jax/call_frame.h"

namespace ddl::jax {
namespace {

using kernels::Kind;

ddl_status call_part(ddl_context* context, const kernels::Request& request, const kernels::Part& part,
                     const ddl_call_options& options) {
  switch (request.kind) {
    case Kind::kAllreduce:
      return ddl_allreduce(context, part.send, part.recv, part.count, part.dtype, request.op, &options);
    case Kind::kBroadcast:
      // XLA lets the result be the argument (input_output_aliases).
      return ddl_broadcast(context, part.recv, part.count, part.dtype, request.root, &options);
    case Kind::kReduceScatter:
      return ddl_reduce_scatter(context, part.send, part.recv, part.rank_counts.data(), part.dtype,
                                request.op, &options);
    case Kind::kAllgather:
      return ddl_allgather(context, part.send, part.recv, part.count, part.dtype, &options);
    case Kind::kAlltoall: break;
  }
  return ddl_alltoall(context, part.send, part.recv, part.rank_counts.front(), part.dtype, &options);
}

void execute(const xla::CallFrame& frame, void* stream) {
  const kernels::Joined here = kernels::joined();
  const kernels::Request request = request_of(frame, here.context);
  const std::int32_t ranks = ddl_process_set_size(here.context, request.process_set);
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;
  options.process_set = request.process_set;
  options.prescale = request.prescale;
  options.postscale = request.postscale;
  options.stream = stream;
  for (std::size_t i = 0; i < request.parts.size(); ++i) {
    const kernels::Part& part = request.parts[i];
    if (request.kind == Kind::kAllgather &&
        elements(*frame.results.buffers[i]) != part.count * static_cast<std::uint64_t>(ranks))
      throw Failure{DDL_ERROR_UNSUPPORTED,
                    "on GPUs all ranks give the same number of rows to an allgather, and \"" + request.name +
                        "\" was traced for other numbers; pad the arrays, or gather on CPUs"};
    const ddl_status status = call_part(here.context, request, part, options);
    if (status != DDL_OK) throw Failure{status, ddl_last_error()};
  }
}

}  // namespace
}  // namespace ddl::jax

namespace xla = ddl::jax::xla;

extern "C" DDL_API xla::Error* ddl_jax_execute_on_stream(xla::CallFrame* frame) {
  using namespace ddl::jax;
  if (is_question(*frame, nullptr)) return nullptr;
  const xla::Api& api = *frame->api;
  xla::StreamGetArguments arguments = {sizeof arguments, nullptr, frame->context, nullptr};
  if (xla::Error* const problem = api.stream_get(&arguments)) return problem;
  try {
    execute(*frame, arguments.stream);
  } catch (const Failure& failure) {
    return error_of(api, failure.status, failure.sentence);
  }
  return nullptr;
}
