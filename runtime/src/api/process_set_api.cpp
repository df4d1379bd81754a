// The C functions of ddl.h that make, describe and free process sets.
#include <algorithm>
#include <span>
#include <vector>

#include "runtime/src/api/c_abi.h"

namespace {

using namespace ddl::
    runtime;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

/// Runs make(parent, id), which makes a process set.
template <class Make>
ddl_status make_set(ddl_context* handle, uint64_t parent, uint64_t* process_set, Make make) noexcept try {
  if (process_set == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "process_set is null");
  *process_set = DDL_NO_PROCESS_SET;
  const auto set = set_of(handle, parent);
  return report(set ? make(**set) : fail(set.error()));
} catch (...) {
  return report_exception();
}

/// The list of ranks, which must not be empty and has each rank at most once.
tl::expected<std::span<const int32_t>, Failure> list_of(const int32_t* ranks, int32_t count, int size) {
  if (count > 0 && ranks == nullptr) return fail(DDL_ERROR_INVALID_ARGUMENT, "ranks is null");
  const std::span<const int32_t> list(ranks, static_cast<size_t>(std::max(count, 0)));
  if (list.empty()) return fail(DDL_ERROR_INVALID_ARGUMENT, "count: a process set has one rank at least");
  std::vector<bool> seen(static_cast<size_t>(size), false);
  for (const int32_t rank : list) {
    if (rank < 0 || rank >= size) {
      return fail(DDL_ERROR_INVALID_ARGUMENT,
                  "ranks: " + std::to_string(rank) + " is not a rank of 0 to " + std::to_string(size - 1));
    }
    if (seen[static_cast<size_t>(rank)]) {
      return fail(DDL_ERROR_INVALID_ARGUMENT, "ranks: " + std::to_string(rank) + " is there twice");
    }
    seen[static_cast<size_t>(rank)] = true;
  }
  return list;
}

/// A store of the program, of any version of ddl.h.
tl::expected<ddl_store, Failure> store_of(const ddl_store* given) {
  if (given == nullptr) return fail(DDL_ERROR_INVALID_ARGUMENT, "store is null");
  ddl_store store = DDL_STORE_INIT;
  DDL_TRY(read_options(given, store, "DDL_STORE_INIT"));
  if (store.put == nullptr || store.get == nullptr)
    return fail(DDL_ERROR_INVALID_ARGUMENT, "store: a function, put or get, is null");
  return store;
}

}  // namespace

extern "C" {

ddl_status ddl_process_set_create(ddl_context* context, const int32_t* ranks, int32_t count,
                                  uint64_t* process_set) {
  return make_set(context, DDL_WORLD, process_set, [&](ProcessSet& world) -> Outcome {
    DDL_ASSIGN(list, list_of(ranks, count, world.size()));
    return context->context->make_set(world, list, *process_set);
  });
}

ddl_status ddl_process_set_create_by_members(ddl_context* context, const int32_t* ranks, int32_t count,
                                             const char* name, const ddl_store* store,
                                             uint64_t* process_set) {
  return make_set(context, DDL_WORLD, process_set, [&](ProcessSet& world) -> Outcome {
    DDL_ASSIGN(list, list_of(ranks, count, world.size()));
    if (std::find(list.begin(), list.end(), world.rank()) == list.end()) {
      return fail(DDL_ERROR_INVALID_ARGUMENT, "ranks: this rank, " + std::to_string(world.rank()) +
                                                  ", is not one of them; only members call this function");
    }
    if (name == nullptr || *name == '\0') return fail(DDL_ERROR_INVALID_ARGUMENT, "name is empty");
    DDL_ASSIGN(given, store_of(store));
    return context->context->make_set_by_members({list.begin(), list.end()}, name, given, *process_set);
  });
}

ddl_status ddl_process_set_split(ddl_context* context, uint64_t parent, int32_t color, int32_t key,
                                 uint64_t* process_set) {
  return make_set(context, parent, process_set, [&](ProcessSet& set) {
    return context->context->split_set(set, {color, key}, *process_set);
  });
}

ddl_status ddl_process_set_free(ddl_context* context, uint64_t process_set) try {
  if (context == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "context is null");
  return report(context->context->free_set(process_set));
} catch (...) {
  return report_exception();
}

int32_t ddl_process_set_rank(const ddl_context* context, uint64_t process_set) {
  const auto set = set_of(context, process_set);
  return set ? (*set)->rank() : -1;
}
int32_t ddl_process_set_size(const ddl_context* context, uint64_t process_set) {
  const auto set = set_of(context, process_set);
  return set ? (*set)->size() : -1;
}
ddl_status ddl_process_set_ranks(const ddl_context* context, uint64_t process_set, int32_t* ranks) try {
  if (ranks == nullptr) return report(DDL_ERROR_INVALID_ARGUMENT, "ranks is null");
  const auto set = set_of(context, process_set);
  if (!set) return report(set.error());
  std::copy((*set)->job_ranks().begin(), (*set)->job_ranks().end(), ranks);
  return DDL_OK;
} catch (...) {
  return report_exception();
}

}  // extern "C"
