// What XLA hands to a handler, as a request to libddl, and what a handler answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ddl/ddl.h>

#include "python/kernels/jax/xla_abi.h"

namespace ddl::jax {

enum class Kind { kAllreduce, kAllgather, kBroadcast, kAlltoall, kReduceScatter };

/// One array that goes in and the one that comes out.
struct Part {
  const void* send;
  void* recv;
  std::uint64_t send_count;
  std::uint64_t recv_count;
  ddl_dtype dtype;
  std::vector<std::uint64_t> shape;  ///< of what goes in
};

struct Request {
  Kind kind = Kind::kAllreduce;
  std::string name;  ///< of the call, the same on all ranks
  std::int64_t op = 0;
  std::int64_t root = 0;
  std::uint64_t process_set = DDL_WORLD;
  double prescale = 1.0;
  double postscale = 1.0;
  std::vector<Part> parts;  ///< several: a grouped allreduce
};

/// The bytes of the result of a part.
std::uint64_t recv_bytes(const Part& part);

/// An error of XLA with this sentence.
xla::Error* error_of(const xla::Api& api, ddl_status status, const std::string& sentence);

/// Whether XLA only asks which version of its interface the handler was written for; the answer is then in the frame.
/// state_type: of the state that the handler sets, or null.
bool is_question(const xla::CallFrame& frame, const xla::TypeId* state_type);

/// The value of an attribute; "" and 0 if there is none.
std::string text_attribute(const xla::CallFrame& frame, const char* name);
std::int64_t whole_attribute(const xla::CallFrame& frame, const char* name);

/// The request of a frame of the stage "execute".
Request request_of(const xla::CallFrame& frame, Kind kind);

}  // namespace ddl::jax
