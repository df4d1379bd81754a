// What ddlrun can use, or could: one box of --check-build.
#pragma once

#include <string>
#include <vector>

namespace ddl::cli {

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

}  // namespace ddl::cli
