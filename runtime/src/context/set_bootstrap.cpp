#include "runtime/src/context/set_bootstrap.h"

#include <nlohmann/json.hpp>

namespace ddl::runtime {

Status SetBootstrap::put(std::string_view key, std::string_view value) {
  own_.insert_or_assign(std::string(key), std::string(value));
  return {};
}

Status SetBootstrap::fence(Deadline) {
  auto texts = gather_(nlohmann::json(own_).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  gather_ = nullptr;
  if (!texts) return fail(std::move(texts.error()));
  for (const int rank : parent_ranks_) {
    const auto json =
        nlohmann::json::parse((*texts)[static_cast<std::size_t>(rank)], nullptr, /*allow_exceptions=*/false);
    Values values;
    if (!json.is_object()) return fail(ErrorCode::kProtocol, "a rank put something that is not JSON");
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string()) return fail(ErrorCode::kProtocol, "a rank put something under " + key);
      values.emplace(key, value.get<std::string>());
    }
    all_.push_back(std::move(values));
  }
  return {};
}

Result<std::string> SetBootstrap::get(int rank, std::string_view key, Deadline) {
  const Values& values = all_[static_cast<std::size_t>(rank)];
  const auto found = values.find(std::string(key));
  if (found == values.end()) {
    return fail(ErrorCode::kNotFound,
                "rank " + std::to_string(rank) + " put nothing under " + std::string(key));
  }
  return found->second;
}

}  // namespace ddl::runtime
