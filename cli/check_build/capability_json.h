// --check-build for programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/check_build/capability.h"

namespace ddl::cli {

/// A finding as one line, and back. Error: the text is none.
std::string to_text(const Finding& finding);
Result<Finding> finding_of(std::string_view text);

/// One line of JSON, with its newline; docs/reference/check-build.md has the schema. Pure.
std::string check_build_json(const std::vector<Capability>& all, const std::string& host);

/// What one host has said by check_build_json().
struct HostCapabilities {
  std::string host;
  std::vector<Capability> all;
};
/// One line of JSON, with its newline: {"kind": "check_build_hosts", "hosts": [...]}, each as of check_build_json(). Pure.
std::string check_build_hosts_json(const std::vector<HostCapabilities>& hosts);
/// Error: the text is not what check_build_json() writes. Pure.
Result<HostCapabilities> read_check_build(std::string_view text);

}  // namespace ddl::cli
