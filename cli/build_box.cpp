#include "cli/build_box.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "contract/version.h"

namespace ddl::cli {

std::string check_build_text(const std::vector<BuildBox>& boxes) {
  std::size_t widest = 0;
  for (const BuildBox& box : boxes) widest = std::max(widest, box.name.size());

  std::string text = fmt::format("ddlrun v{}:\n", contract::kVersion);
  std::string heading;
  for (const BuildBox& box : boxes) {
    if (box.heading != heading) {
      heading = box.heading;
      text += fmt::format("\nAvailable {}:\n", heading);
    }
    std::string line =
        fmt::format("    [{}] {:<{}}  {}", box.available ? 'X' : ' ', box.name, widest, box.detail);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string check_build_json(const std::vector<BuildBox>& boxes) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["ddlrun"] = contract::kVersion;
  json["kind"] = "check_build";
  json["boxes"] = Json::array();
  for (const BuildBox& box : boxes) {
    json["boxes"].push_back(Json{
        {"heading", box.heading}, {"name", box.name}, {"available", box.available}, {"detail", box.detail}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ddl::cli
