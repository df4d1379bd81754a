// What ddlrun can use on a host: a capability is one line of --check-build. It is printed as text and as JSON, for
// one host and for a comparison of several hosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::cli {

/// What a probe found on this machine.
struct Finding {
  bool works = false;
  std::string version;  ///< "OpenPMIx 4.2.2"
  std::string file;     ///< the program or library
  std::string detail;   ///< what else was found; or why it does not work, as a sentence without its full stop
  std::string remedy;   ///< what to install or set; "" if nothing would help
  bool operator==(const Finding&) const = default;
};

struct Capability {
  std::string heading;  ///< "Launchers"; the capabilities of one heading are adjacent
  std::string name;     ///< "Open MPI"
  std::string key;      ///< of --check-build=KEY: "open-mpi"
  bool built = false;   ///< this build supports it
  Finding here;
  bool available() const { return built && here.works; }
  bool operator==(const Capability&) const = default;
};

// --check-build as JSON.

/// Writes a finding as one line, and reads it. Error: the text is not a finding.
std::string to_text(const Finding& finding);
Result<Finding> finding_of(std::string_view text);

/// One line of JSON, with its newline; docs/reference/check-build.md has the schema. Pure.
std::string check_build_json(const std::vector<Capability>& all, const std::string& host);

/// The contents of one host's check_build_json().
struct HostCapabilities {
  std::string host;
  std::vector<Capability> all;
};
/// One line of JSON, with its newline: {"kind": "check_build_hosts", "hosts": [...]}, each host as in
/// check_build_json(). Pure.
std::string check_build_hosts_json(const std::vector<HostCapabilities>& hosts);
/// Error: the text is not what check_build_json() writes. Pure.
Result<HostCapabilities> read_check_build(std::string_view text);

// --check-build as text.

/// "Available Frameworks:" and "[X]" lines as horovodrun prints them, then a table of what was found. Pure.
std::string check_build_text(const std::vector<Capability>& all);

/// One capability: "NCCL: built no, works here yes ...". With its newline. Pure.
std::string capability_line(const Capability& one);

// --check-build of several hosts, compared.

/// "[X]" where every host can use it, "[ ]" where no host can, "[/]" where some can; then the differences between
/// hosts, and the reason for each "[ ]". Pure; all hosts have the capabilities of the first, in its order.
std::string check_build_hosts_text(const std::vector<HostCapabilities>& hosts);

}  // namespace ddl::cli
