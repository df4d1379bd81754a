// What ddlrun can use on a host, or could: one capability is one line of --check-build. It is printed
// for a person and as JSON, for one host and for several beside each other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ddl::cli {

// What ddlrun can use, or could: one box of --check-build.

/// What looking at this machine found out.
struct Finding {
  bool works = false;
  std::string version;  ///< "OpenPMIx 4.2.2"
  std::string file;     ///< that it was loaded from, or is
  std::string detail;   ///< what else was found; or why it does not work, as a sentence without its end
  std::string remedy;   ///< what to install or set; "" where that does not help
  bool operator==(const Finding&) const = default;
};

struct Capability {
  std::string heading;  ///< "Launchers"; those of one heading stand together
  std::string name;     ///< "Open MPI"
  std::string key;      ///< of --check-build=KEY: "open-mpi"
  bool built = false;   ///< this build has what it takes
  Finding here;
  bool available() const { return built && here.works; }
  bool operator==(const Capability&) const = default;
};

// --check-build for programs.

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

// --check-build for a person.

/// horovodrun's look, "Available Frameworks:" and "[X]" lines, then what is known of each. Pure.
std::string check_build_text(const std::vector<Capability>& all);

/// One of them: "NCCL: built no, works here yes ...". With its newline. Pure.
std::string capability_line(const Capability& one);

// --check-build of several hosts, beside each other.

/// horovodrun's boxes, "[X]" what every host can use, "[ ]" what none can, "[/]" what some can; then where hosts differ, and
/// why what none can is empty. Pure; all hosts have the boxes of the first, in its order.
std::string check_build_hosts_text(const std::vector<HostCapabilities>& hosts);

}  // namespace ddl::cli
