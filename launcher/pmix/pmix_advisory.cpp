#include "launcher/pmix/pmix_advisory.h"

#include <pmix.h>
#include <pmix_server.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "base/fd.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "contract/environment.h"

namespace ddl::launcher {

namespace {

constexpr std::string_view kAdvisory = "CVE-2023-41915";

using Version = std::array<int, 3>;

/// "OpenPMIx 4.2.2rc2 (...)" to {4, 2, 2}.
std::optional<Version> parse_version(std::string_view text) {
  const std::size_t first = text.find_first_of("0123456789");
  if (first == std::string_view::npos) return std::nullopt;
  const char* at = text.data() + first;
  const char* end = text.data() + text.size();
  Version version{};
  for (std::size_t i = 0; i < version.size(); ++i) {
    const auto [rest, error] = std::from_chars(at, end, version[i]);
    if (error != std::errc()) return std::nullopt;
    at = rest;
    if (i + 1 < version.size() && (at == end || *at++ != '.')) return std::nullopt;
  }
  return version;
}

}  // namespace

PmixSafety pmix_safety(std::string_view version_text, std::string_view package_version) {
  const auto version = parse_version(version_text);
  if (!version) return PmixSafety::kUnknown;
  if (*version >= Version{4, 2, 6} && *version != Version{5, 0, 0}) return PmixSafety::kFixed;
  // Debian 12's security update of an old version (DSA-5547-1).
  constexpr std::string_view kPatchedPackage = "4.2.2-1+deb12u";
  return package_version.starts_with(kPatchedPackage) ? PmixSafety::kPatched : PmixSafety::kExposed;
}

std::string_view pmix_name(std::string_view version_text) {
  return trim(version_text.substr(0, version_text.find('(')));
}

std::string pmix_sentence(std::string_view version_text, std::string_view package_version, bool as_root) {
  std::string text(pmix_name(version_text));
  if (!package_version.empty()) text += ", package " + std::string(package_version);
  switch (pmix_safety(version_text, package_version)) {
    case PmixSafety::kFixed: return text;
    case PmixSafety::kPatched: return text + ", patched for " + std::string(kAdvisory);
    case PmixSafety::kExposed:
      text += ", older than the fix for " + std::string(kAdvisory) + " and not known to be patched";
      return text + (as_root ? ": run ddlrun as an ordinary user, not as root" : " (a danger only for root)");
    case PmixSafety::kUnknown:
      return text + ", of unknown version: " + std::string(kAdvisory) + " not ruled out";
  }
  return text;
}

std::optional<std::string> pmix_refusal(std::string_view version_text, std::string_view package_version) {
  if (pmix_safety(version_text, package_version) != PmixSafety::kExposed) return std::nullopt;
  return "root does not start ranks with " + std::string(pmix_name(version_text)) +
         ", which is older than the fix for " + std::string(kAdvisory) +
         " and not known to be patched; run ddlrun as an ordinary user, or set " +
         contract::env::kAllowExposedPmix + "=1 if nobody else uses this machine";
}

PmixLibrary linked_pmix() {
  return {PMIx_Get_version(), file_of_code(reinterpret_cast<void*>(&PMIx_server_init))};
}

Result<std::string> pmix_package_version(const PmixLibrary& library) {
  constexpr std::string_view kCompiledIn = DDL_PMIX_PACKAGE_VERSION;
  if (!kCompiledIn.empty()) return std::string(kCompiledIn);
  // dpkg knows only the libraries that it put there.
  if (!library.path.starts_with("/usr/lib/") && !library.path.starts_with("/lib/")) return std::string();
  const auto status = read_file("/var/lib/dpkg/status", std::size_t{64} << 20);
  if (!status && status.error().system_errno() == ENOENT) return std::string();
  if (!status) return fail(status.error());
  return std::string(installed_package_version(*status, "libpmix2"));
}

std::string_view installed_package_version(std::string_view dpkg_status, std::string_view package) {
  // Paragraphs of "Field: value" lines, separated by empty lines (deb822(5)); the name comes first.
  const std::string name = "Package: " + std::string(package) + "\n";
  for (std::size_t at = 0; (at = dpkg_status.find(name, at)) != std::string_view::npos; at += name.size()) {
    if (at > 0 && dpkg_status[at - 1] != '\n') continue;
    const std::string_view paragraph = dpkg_status.substr(at, dpkg_status.find("\n\n", at) - at);
    bool installed = false;
    for (const std::string_view line : split(paragraph, '\n')) {
      if (line.starts_with("Status: ")) installed = line.ends_with(" installed");
      if (installed && line.starts_with("Version: ")) return line.substr(9);
    }
  }
  return {};
}

}  // namespace ddl::launcher
