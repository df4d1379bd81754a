#include "runtime/src/wire/shared_key.h"

#include <span>

#include "contract/environment.h"

namespace ddl::runtime {
namespace {

/// No copy of a key stays in memory that is freed.
void wipe_text(std::string& text) { net::wipe(std::as_writable_bytes(std::span(text.data(), text.size()))); }

std::string full_name(const std::string& name, const Bootstrap& bootstrap) {
  return name + "." + std::to_string(bootstrap.membership().generation);
}

}  // namespace

Status SharedKey::publish(Bootstrap& bootstrap, std::optional<int> inherited) {
  if (inherited) {
    auto key = net::JobKey::from_memfd(*inherited);
    if (!key) return fail(std::move(key.error().during(contract::env::kJobKeyFd)));
    key_.emplace(*std::move(key));
  } else if (bootstrap.membership().rank == 0) {
    DDL_ASSIGN(made, net::JobKey::random());
    std::string hex = made.to_hex();
    const Status put = bootstrap.put(full_name(name_, bootstrap), hex);
    wipe_text(hex);
    DDL_TRY(put);
    key_.emplace(std::move(made));
  }
  return {};
}

Status SharedKey::fetch(Bootstrap& bootstrap, Deadline deadline) {
  if (key_) return {};
  auto hex = bootstrap.get(0, full_name(name_, bootstrap), deadline);
  if (!hex) return fail(std::move(hex.error().during("fetching the job's key")));
  auto fetched = net::JobKey::from_hex(*hex);
  wipe_text(*hex);
  if (!fetched) return fail(std::move(fetched.error()));
  key_.emplace(*std::move(fetched));
  return {};
}

}  // namespace ddl::runtime
