// The module that JAX loads: handlers of XLA's typed FFI over libddl's named tensors.
#include <atomic>

#include <ddl/ddl.h>

namespace {

std::atomic<ddl_context*> g_context;

}  // namespace

/// The context that calls are made in; null: there is none.
extern "C" DDL_API void ddl_jax_context(ddl_context* context) { g_context = context; }
