#include "python/kernels/jax/call_frame.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace ddl::jax {
namespace {

using kernels::Kind;
using kernels::Part;
using kernels::Request;

ddl_dtype dtype_of(xla::DataType type) {
  switch (type) {
    case xla::kBool: return DDL_BOOL;
    case xla::kInt8: return DDL_INT8;
    case xla::kInt16: return DDL_INT16;
    case xla::kInt32: return DDL_INT32;
    case xla::kInt64: return DDL_INT64;
    case xla::kUint8: return DDL_UINT8;
    case xla::kUint16: return DDL_UINT16;
    case xla::kUint32: return DDL_UINT32;
    case xla::kUint64: return DDL_UINT64;
    case xla::kFloat16: return DDL_FLOAT16;
    case xla::kFloat32: return DDL_FLOAT32;
    case xla::kFloat64: return DDL_FLOAT64;
    case xla::kBfloat16: return DDL_BFLOAT16;
    case xla::kFloat8E5m2: return DDL_FLOAT8_E5M2;
    case xla::kFloat8E4m3fn: return DDL_FLOAT8_E4M3FN;
    case xla::kFloat8E5m2fnuz: return DDL_FLOAT8_E5M2FNUZ;
    case xla::kFloat8E4m3fnuz: return DDL_FLOAT8_E4M3FNUZ;
  }
  return -1;  // libddl refuses it
}

xla::ErrorCode code_of(ddl_status status) {
  switch (status) {
    case DDL_ERROR_INVALID_ARGUMENT:
    case DDL_ERROR_MISMATCH: return xla::kInvalidArgument;
    case DDL_ERROR_BUSY: return xla::kFailedPrecondition;
    case DDL_ERROR_TIMEOUT: return xla::kDeadlineExceeded;
    case DDL_ERROR_PEER_LOST:
    case DDL_ERROR_BOOTSTRAP: return xla::kUnavailable;
    case DDL_ERROR_ABORTED:
    case DDL_ERROR_INTERRUPTED: return xla::kAborted;
    case DDL_ERROR_UNSUPPORTED: return xla::kUnimplemented;
    default: return xla::kInternal;
  }
}

/// The place of an attribute's value; null: there is none of this name and type.
const void* attribute(const xla::CallFrame& frame, std::string_view name, xla::AttributeType type) {
  const xla::Attributes& all = frame.attributes;
  for (std::int64_t i = 0; i < all.size; ++i)
    if (all.types[i] == type && std::string_view(all.names[i]->data, all.names[i]->size) == name)
      return all.values[i];
  return nullptr;
}

template <class T>
T scalar_attribute(const xla::CallFrame& frame, const char* name, xla::DataType dtype, T otherwise) {
  const auto* const scalar = static_cast<const xla::Scalar*>(attribute(frame, name, xla::kScalar));
  if (scalar != nullptr && scalar->dtype == dtype) std::memcpy(&otherwise, scalar->value, sizeof otherwise);
  return otherwise;
}

struct Members {
  std::size_t size;
  std::size_t rank;
};
Members members_of(const Request& request, ddl_context* context) {
  const std::int32_t rank = ddl_process_set_rank(context, request.process_set);
  if (rank < 0)
    throw Failure{DDL_ERROR_INVALID_ARGUMENT,
                  "this rank is not in the process set of the call \"" + request.name + "\""};
  return {static_cast<std::size_t>(ddl_process_set_size(context, request.process_set)),
          static_cast<std::size_t>(rank)};
}

/// What each rank gets of the elements; empty where that is not the caller's to say.
std::vector<std::uint64_t> rank_counts(Kind kind, const Part& part, std::size_t ranks) {
  if (kind == Kind::kAlltoall) return std::vector<std::uint64_t>(ranks, part.count / ranks);
  if (kind != Kind::kReduceScatter) return {};
  const std::uint64_t rows = part.shape.empty() ? 1 : part.shape.front();
  std::vector<std::uint64_t> counts = kernels::scattered_rows(rows, ranks);
  for (std::uint64_t& count : counts) count *= rows == 0 ? 0 : part.count / rows;
  return counts;
}

/// Whether a result has the size of what comes. (An allgather's ranks may give different numbers.)
bool fits(Kind kind, const Part& part, const xla::Buffer& result, const Members& members) {
  if (kind == Kind::kReduceScatter) return elements(result) == part.rank_counts[members.rank];
  return kind == Kind::kAllgather ||
         (elements(result) == part.count && (kind != Kind::kAlltoall || part.count % members.size == 0));
}

}  // namespace

xla::Error* error_of(const xla::Api& api, ddl_status status, const std::string& sentence) {
  xla::ErrorCreateArguments arguments = {sizeof arguments, nullptr, sentence.c_str(), code_of(status)};
  return api.error_create(&arguments);
}

bool is_question(const xla::CallFrame& frame, const xla::TypeId* state_type) {
  if (frame.extension == nullptr || frame.extension->type != xla::kMetadata) return false;
  xla::Metadata& metadata = *reinterpret_cast<xla::MetadataExtension*>(frame.extension)->metadata;
  // Of a newer XLA the module uses what the newest version that it knows has. Of API 0.1 the question has no functions.
  const int minor = frame.api == nullptr ? 1 : std::min(frame.api->version.minor, xla::kNewestMinor);
  metadata.version = {sizeof metadata.version, nullptr, xla::kMajor, minor};
  metadata.traits = 0;
  if (minor >= xla::kTypeInfoMinor)
    metadata.state_type = state_type == nullptr ? xla::TypeId{0} : *state_type;
  return true;
}

std::string text_attribute(const xla::CallFrame& frame, const char* name) {
  const auto* const text = static_cast<const xla::ByteSpan*>(attribute(frame, name, xla::kString));
  return text == nullptr ? std::string() : std::string(text->data, text->size);
}

std::int64_t whole_attribute(const xla::CallFrame& frame, const char* name) {
  return scalar_attribute<std::int64_t>(frame, name, xla::kInt64, 0);
}

std::uint64_t elements(const xla::Buffer& buffer) {
  std::uint64_t count = 1;
  for (std::int64_t i = 0; i < buffer.dimensions; ++i) count *= static_cast<std::uint64_t>(buffer.shape[i]);
  return count;
}

Request request_of(const xla::CallFrame& frame, ddl_context* context) {
  if (context == nullptr) throw Failure{DDL_ERROR_ABORTED, kernels::kNotJoined};
  Request request;
  request.kind = static_cast<Kind>(whole_attribute(frame, "kind"));
  request.name = text_attribute(frame, "name");
  request.op = static_cast<ddl_op>(whole_attribute(frame, "op"));
  request.root = static_cast<std::int32_t>(whole_attribute(frame, "root"));
  request.process_set = static_cast<std::uint64_t>(whole_attribute(frame, "process_set"));
  request.prescale = scalar_attribute(frame, "prescale", xla::kFloat64, 1.0);
  request.postscale = scalar_attribute(frame, "postscale", xla::kFloat64, 1.0);
  const Members members = members_of(request, context);
  for (std::int64_t i = 0; i < frame.arguments.size && i < frame.results.size; ++i) {
    const xla::Buffer& in = *frame.arguments.buffers[i];
    const xla::Buffer& out = *frame.results.buffers[i];
    Part part = {in.data, out.data, elements(in), dtype_of(in.dtype), {in.shape, in.shape + in.dimensions},
                 {}};
    part.rank_counts = rank_counts(request.kind, part, members.size);
    if (!fits(request.kind, part, out, members))
      throw Failure{DDL_ERROR_INVALID_ARGUMENT,
                    "the call \"" + request.name + "\" was traced for another number of ranks than the " +
                        std::to_string(members.size) + " that there are now; trace it again"};
    request.parts.push_back(std::move(part));
  }
  return request;
}

}  // namespace ddl::jax
