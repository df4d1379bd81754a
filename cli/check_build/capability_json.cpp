#include "cli/check_build/capability_json.h"

#include <nlohmann/json.hpp>

#include "contract/version.h"

namespace ddl::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json json_of(const Finding& here) {
  return {{"works", here.works},
          {"version", here.version},
          {"file", here.file},
          {"detail", here.detail},
          {"remedy", here.remedy}};
}

Json json_of(const std::vector<Capability>& all, const std::string& host) {
  Json json{
      {"ddlrun", contract::kVersion}, {"kind", "check_build"}, {"host", host}, {"boxes", Json::array()}};
  for (const Capability& one : all) {
    Json box{{"heading", one.heading},
             {"name", one.name},
             {"key", one.key},
             {"built", one.built},
             {"available", one.available()}};
    box.update(json_of(one.here));
    json["boxes"].push_back(std::move(box));
  }
  return json;
}

Finding finding_in(const Json& json) {
  return {json.at("works").get<bool>(), json.at("version").get<std::string>(),
          json.at("file").get<std::string>(), json.at("detail").get<std::string>(),
          json.at("remedy").get<std::string>()};
}

}  // namespace

std::string to_text(const Finding& finding) { return line_of(json_of(finding)); }

Result<Finding> finding_of(std::string_view text) {
  try {
    return finding_in(Json::parse(text));
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kProtocol, error.what());
  }
}

std::string check_build_json(const std::vector<Capability>& all, const std::string& host) {
  return line_of(json_of(all, host)) + "\n";
}

std::string check_build_hosts_json(const std::vector<HostCapabilities>& hosts) {
  Json json{{"ddlrun", contract::kVersion}, {"kind", "check_build_hosts"}, {"hosts", Json::array()}};
  for (const HostCapabilities& host : hosts) json["hosts"].push_back(json_of(host.all, host.host));
  return line_of(json) + "\n";
}

Result<HostCapabilities> read_check_build(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    HostCapabilities host{json.at("host").get<std::string>(), {}};
    for (const Json& box : json.at("boxes")) {
      host.all.push_back({box.at("heading").get<std::string>(), box.at("name").get<std::string>(),
                          box.at("key").get<std::string>(), box.at("built").get<bool>(), finding_in(box)});
    }
    return host;
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kProtocol, error.what());
  }
}

}  // namespace ddl::cli
