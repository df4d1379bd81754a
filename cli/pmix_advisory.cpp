#include "cli/pmix_advisory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace ddl::cli {

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
  // Debian 12's and 11's security updates of old versions (DSA-5547-1).
  constexpr std::string_view kPatchedPackages[] = {"4.2.2-1+deb12u", "4.0.0-4.1+deb11u"};
  const bool patched =
      std::any_of(std::begin(kPatchedPackages), std::end(kPatchedPackages),
                  [&](std::string_view prefix) { return package_version.starts_with(prefix); });
  return patched ? PmixSafety::kPatched : PmixSafety::kExposed;
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

std::string_view installed_package_version(std::string_view dpkg_status, std::string_view package) {
  // Paragraphs of "Field: value" lines, parted by empty lines (deb822(5)).
  bool in_package = false;
  bool installed = false;
  for (const std::string_view line : split(dpkg_status, '\n')) {
    if (line.empty()) in_package = installed = false;
    if (line.starts_with("Package: ")) in_package = line.substr(9) == package;
    if (line.starts_with("Status: ")) installed = line.ends_with(" installed");
    if (in_package && installed && line.starts_with("Version: ")) return line.substr(9);
  }
  return {};
}

}  // namespace ddl::cli
