// Calls of XLA's programs as named tensors of libddl, which complete XLA's futures.
#pragma once

#include "python/kernels/jax/call_frame.h"

namespace ddl::jax {

/// Submits a request, and completes the future when it has been executed or has failed. Never waits. Calls of the same
/// name and process set are submitted one after the other, in the order in which they begin.
void start(const xla::Api& api, xla::Future* future, Request request);

}  // namespace ddl::jax
