#include "runtime/src/bootstrap/put_values.h"

#include <nlohmann/json.hpp>

namespace ddl::runtime {

Result<std::string> PutValues::get(int rank, std::string_view key) const {
  const auto found = values_.find(key);
  if (found != values_.end()) return found->second;
  return fail(ErrorCode::kNotFound,
              "rank " + std::to_string(rank) + " put nothing under " + std::string(key));
}

std::string PutValues::text() const {
  return nlohmann::json(values_).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

Status PutValues::add(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail(ErrorCode::kProtocol, "a rank put something that is not JSON");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return fail(ErrorCode::kProtocol, "a rank put something under " + key);
    put(key, value.get<std::string>());
  }
  return {};
}

}  // namespace ddl::runtime
