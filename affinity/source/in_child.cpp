#include "affinity/source/in_child.h"

#include <nlohmann/json.hpp>

#include "base/child_question.h"

namespace ddl::affinity {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VendorGpu, index, bus_id, uuid, model, by_uuid)

namespace {

std::string answer_of(const std::function<Result<std::vector<VendorGpu>>()>& ask) {
  const auto gpus = ask();
  nlohmann::json json;
  if (gpus) {
    json["gpus"] = *gpus;
  } else {
    json["failure"] = gpus.error().message();
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<std::vector<VendorGpu>> in_child(const std::function<Result<std::vector<VendorGpu>>()>& ask,
                                        std::chrono::milliseconds patience) {
  auto child = ChildQuestion::ask([&ask] { return answer_of(ask); });
  if (!child) return fail(std::move(child.error()));
  const auto text = child->answer(Deadline::after(patience));
  if (!text && text.error().code() == ErrorCode::kTimeout)
    return fail(ErrorCode::kTimeout, "no answer within " + std::to_string(patience.count()) + " ms");
  if (!text) return fail(text.error());
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_object() && json.contains("failure"))
    return fail(ErrorCode::kUnavailable, json.value("failure", ""));
  try {
    return json.at("gpus").get<std::vector<VendorGpu>>();
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::kUnavailable, "its answer is cut short");
  }
}

}  // namespace ddl::affinity
