#include "python/kernels/jax/call_frame.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace ddl::jax {
namespace {

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

std::uint64_t elements(const xla::Buffer& buffer) {
  std::uint64_t count = 1;
  for (std::int64_t i = 0; i < buffer.dimensions; ++i) count *= static_cast<std::uint64_t>(buffer.shape[i]);
  return count;
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

}  // namespace

std::uint64_t recv_bytes(const Part& part) { return part.recv_count * ddl_dtype_size(part.dtype); }

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

Request request_of(const xla::CallFrame& frame, Kind kind) {
  Request request;
  request.kind = kind;
  request.name = text_attribute(frame, "name");
  request.op = whole_attribute(frame, "op");
  request.root = whole_attribute(frame, "root");
  request.process_set = static_cast<std::uint64_t>(whole_attribute(frame, "process_set"));
  request.prescale = scalar_attribute(frame, "prescale", xla::kFloat64, 1.0);
  request.postscale = scalar_attribute(frame, "postscale", xla::kFloat64, 1.0);
  for (std::int64_t i = 0; i < frame.arguments.size && i < frame.results.size; ++i) {
    const xla::Buffer& in = *frame.arguments.buffers[i];
    const xla::Buffer& out = *frame.results.buffers[i];
    request.parts.push_back({in.data,
                             out.data,
                             elements(in),
                             elements(out),
                             dtype_of(in.dtype),
                             {in.shape, in.shape + in.dimensions}});
  }
  return request;
}

}  // namespace ddl::jax
