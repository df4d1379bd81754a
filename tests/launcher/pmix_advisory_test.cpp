#include "launcher/pmix/pmix_advisory.h"

#include "support/catch.h"

using namespace ddl::launcher;

namespace {

constexpr char kVersion42[] = "OpenPMIx 4.2.2rc2 (PMIx Standard: 4.2, Stable ABI: 0.0, Provisional ABI: 0.0)";

}  // namespace

TEST_CASE("which PMIx is safe as root") {
  const auto of_version = [](const char* version) {
    return pmix_safety(std::string("OpenPMIx ") + version, "");
  };
  CHECK(of_version("4.2.6") == PmixSafety::kFixed);
  CHECK(of_version("4.2.10 (PMIx Standard: 4.2)") == PmixSafety::kFixed);
  CHECK(of_version("5.0.1") == PmixSafety::kFixed);
  CHECK(of_version("6.0.0") == PmixSafety::kFixed);
  CHECK(of_version("5.0.0") == PmixSafety::kExposed);
  CHECK(of_version("4.2.5") == PmixSafety::kExposed);
  CHECK(of_version("3.2.3") == PmixSafety::kExposed);
  CHECK(of_version("four") == PmixSafety::kUnknown);
  CHECK(of_version("4") == PmixSafety::kUnknown);
  CHECK(of_version("4.2.") == PmixSafety::kUnknown);
  CHECK(of_version("99999999999.2.1") == PmixSafety::kUnknown);
  CHECK(pmix_safety("", "") == PmixSafety::kUnknown);
  CHECK(pmix_safety(kVersion42, "4.2.2-1+deb12u1") == PmixSafety::kPatched);
  CHECK(pmix_safety(kVersion42, "4.2.2-1") == PmixSafety::kExposed);
}

TEST_CASE("the sentence about PMIx names the advisory where it matters") {
  CHECK(pmix_sentence("OpenPMIx 5.0.3", "", true) == "OpenPMIx 5.0.3");
  CHECK(pmix_sentence(kVersion42, "4.2.2-1+deb12u1", true) ==
        "OpenPMIx 4.2.2rc2, package 4.2.2-1+deb12u1, patched for CVE-2023-41915");
  CHECK(pmix_sentence(kVersion42, "", true) ==
        "OpenPMIx 4.2.2rc2, older than the fix for CVE-2023-41915 and not known to be patched: run ddlrun as "
        "an "
        "ordinary user, not as root");
  CHECK_THAT(pmix_sentence(kVersion42, "", false), Catch::EndsWith("(a danger only for root)"));
  CHECK_THAT(pmix_sentence("something", "", false), Catch::Contains("CVE-2023-41915 not ruled out"));
}

TEST_CASE("the version of an installed package is found in dpkg's status") {
  constexpr char kStatus[] =
      "Package: libpmix2-dbg\nStatus: install ok installed\nVersion: 1\n\n"
      "Package: libpmix2\nStatus: install ok installed\nArchitecture: amd64\nVersion: 4.2.2-1+deb12u1\n"
      "Description: x\n Version: 9\n\n"
      "Package: gone\nStatus: deinstall ok config-files\nVersion: 2\n";
  CHECK(installed_package_version(kStatus, "libpmix2") == "4.2.2-1+deb12u1");
  CHECK(installed_package_version(kStatus, "gone").empty());
  CHECK(installed_package_version(kStatus, "libpmix").empty());
  CHECK(installed_package_version("", "libpmix2").empty());
}

TEST_CASE("root does not start a PMIx server that is exposed, and the message says what to do") {
  CHECK(pmix_refusal("OpenPMIx 5.0.3", "") == std::nullopt);
  CHECK(pmix_refusal(kVersion42, "4.2.2-1+deb12u1") == std::nullopt);
  CHECK(pmix_refusal("of no known version", "") == std::nullopt);
  const auto refusal = pmix_refusal(kVersion42, "4.2.2-1");
  REQUIRE(refusal);
  CHECK_THAT(*refusal, Catch::Contains("CVE-2023-41915") && Catch::Contains("ordinary user") &&
                           Catch::Contains("DDL_ALLOW_EXPOSED_PMIX=1"));
}
