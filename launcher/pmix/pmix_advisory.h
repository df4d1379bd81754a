// What is known about the safety of a PMIx library.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ddl::launcher {

/// CVE-2023-41915: as root, OpenPMIx older than 4.2.6, and 5.0.0, can be tricked into making another user the owner
/// of a file.
enum class PmixSafety {
  kFixed,    ///< by its version
  kPatched,  ///< by its distribution
  kExposed,  ///< an older version, not known to be patched
  kUnknown,  ///< the version cannot be read
};

/// version_text: PMIx_Get_version(), "OpenPMIx 4.2.2rc2 (PMIx Standard: ...)". package_version: the distribution's,
/// such as "4.2.2-1+deb12u1", or "". Pure.
PmixSafety pmix_safety(std::string_view version_text, std::string_view package_version);

/// "OpenPMIx 4.2.2rc2", from PMIx_Get_version().
std::string_view pmix_name(std::string_view version_text);

/// What --check-build prints about the library. Pure.
std::string pmix_sentence(std::string_view version_text, std::string_view package_version, bool as_root);

/// Why root must not start a PMIx server with this library, or nothing. Pure.
std::optional<std::string> pmix_refusal(std::string_view version_text, std::string_view package_version);

/// The PMIx library that this process is linked with, whose server the agents are.
struct PmixLibrary {
  std::string version_text;  ///< PMIx_Get_version()
  std::string path;          ///< this program's own if the library is a part of it
};
PmixLibrary linked_pmix();

/// The version of the package that the library came with, or of the one whose sources were compiled into this program;
/// otherwise "". Reads dpkg's status file, where there is one. Error: it cannot be read.
Result<std::string> pmix_package_version(const PmixLibrary& library);

/// The version of an installed package in the text of dpkg's status file; "" if it is not there. Pure.
std::string_view installed_package_version(std::string_view dpkg_status, std::string_view package);

}  // namespace ddl::launcher
