// What XLA hands to a handler, as a request to libddl, and what a handler answers.
#pragma once

#include <cstdint>
#include <string>

#include <ddl/ddl.h>

#include "python/kernels/jax/xla_abi.h"
#include "python/kernels/named_calls.h"

namespace ddl::jax {

/// An error of XLA with this sentence.
xla::Error* error_of(const xla::Api& api, ddl_status status, const std::string& sentence);

/// Whether XLA only asks which version of its interface the handler was written for; the answer is then in the frame.
/// state_type: of the state that the handler sets, or null.
bool is_question(const xla::CallFrame& frame, const xla::TypeId* state_type);

/// The value of an attribute; "" and 0 if there is none.
std::string text_attribute(const xla::CallFrame& frame, const char* name);
std::int64_t whole_attribute(const xla::CallFrame& frame, const char* name);

std::uint64_t elements(const xla::Buffer& buffer);

/// Why a call cannot be made.
struct Failure {
  ddl_status status;
  std::string sentence;
};

/// The request of a frame of the stage "execute". XLA has allocated all results, also those of an allgather and an
/// alltoall, which are in recv. Throws Failure, also where the number of ranks says that a result has another size; how
/// much an allgather brings is known only at its end.
kernels::Request request_of(const xla::CallFrame& frame, ddl_context* context);

}  // namespace ddl::jax
