// The C functions of ddl.h that give out memory of the shared heap.
#include "runtime/src/api/guarded.h"
#include "runtime/src/api/handle.h"

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

extern "C" {

ddl_status ddl_alloc(ddl_context* context, uint64_t bytes, void** memory) {
  return guarded([&] {
    if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
    if (memory == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "memory is null");
    return report(context->context->allocate(bytes, *memory));
  });
}

ddl_status ddl_free(ddl_context* context, void* memory) {
  return guarded([&] {
    if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
    return report(context->context->free_memory(memory));
  });
}

}  // extern "C"
