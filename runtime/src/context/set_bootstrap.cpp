#include "runtime/src/context/set_bootstrap.h"

namespace ddl::runtime {

Status SetBootstrap::put(std::string_view key, std::string_view value) {
  own_.put(key, value);
  return {};
}

Status SetBootstrap::fence(Deadline) {
  auto texts = gather_(own_.text());
  gather_ = nullptr;
  if (!texts) return fail(std::move(texts.error()));
  for (const int rank : parent_ranks_)
    DDL_TRY(all_.emplace_back().add((*texts)[static_cast<std::size_t>(rank)]));
  return {};
}

Result<std::string> SetBootstrap::get(int rank, std::string_view key, Deadline) {
  return all_[static_cast<std::size_t>(rank)].get(rank, key);
}

}  // namespace ddl::runtime
