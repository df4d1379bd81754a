// --check-build: its look, what it knows of PMIx, and that its boxes are really tried.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/build_box.h"
#include "cli/build_probe.h"
#include "contract/version.h"
#include "support/catch.h"

using namespace ddl::cli;
using nlohmann::json;

namespace {

const std::vector<BuildBox> kBoxes = {
    {"Frameworks", "C and C++", true, "libddl 0.1.0"},
    {"Frameworks", "PyTorch", false, "no Python package"},
    {"Launchers", "ssh", false, "this machine only"},
    {"Launchers", "none", false, ""},
};

}  // namespace

TEST_CASE("boxes have horovodrun's look and a reason beside them") {
  CHECK(check_build_text(kBoxes) == "ddlrun v" + std::string(ddl::contract::kVersion) +
                                        ":\n"
                                        "\n"
                                        "Available Frameworks:\n"
                                        "    [X] C and C++  libddl 0.1.0\n"
                                        "    [ ] PyTorch    no Python package\n"
                                        "\n"
                                        "Available Launchers:\n"
                                        "    [ ] ssh        this machine only\n"
                                        "    [ ] none\n");
}

TEST_CASE("boxes for programs") {
  const auto parsed = json::parse(check_build_json(kBoxes));
  CHECK(parsed["kind"] == "check_build");
  CHECK(parsed["boxes"].size() == 4);
  CHECK(parsed["boxes"][1] == json::parse(R"({"heading": "Frameworks", "name": "PyTorch", "available": false,
                                              "detail": "no Python package"})"));
}

TEST_CASE("the boxes of this machine are tried, and every one has its reason") {
  const auto boxes = probe_build();
  const auto box = [&](const std::string& heading, const std::string& name) {
    const auto it = std::find_if(boxes.begin(), boxes.end(), [&](const BuildBox& one) {
      return one.heading == heading && one.name == name;
    });
    INFO(heading << ": " << name);
    REQUIRE(it != boxes.end());
    return *it;
  };
  for (const BuildBox& one : boxes) {
    INFO(one.name);
    CHECK_FALSE(one.detail.empty());
    CHECK(one.detail.find('\n') == std::string::npos);
  }
  // What the build itself needs, and what every kernel that it runs on has.
  CHECK(box("Controllers", "PMIx server").available);
  CHECK_THAT(box("Controllers", "PMIx server").detail, Catch::Contains("PMIx"));
  CHECK(box("Tensor Operations", "Shared memory").available);
  CHECK(box("Launchers", "this machine").available);
  CHECK(box("Kernel Features", "pidfd").available);
  CHECK_THAT(box("Launchers", "Slurm").detail, box("Launchers", "Slurm").available
                                                   ? Catch::Contains("/srun, inside a Slurm job")
                                                   : Catch::Contains("there is no srun in PATH"));
  // Whether ssh is here, and what for, is this machine's affair.
  CHECK_THAT(box("Launchers", "ssh").detail,
             box("Launchers", "ssh").available ? Catch::EndsWith("/ssh") : Catch::EndsWith("openssh-client"));
  CHECK_FALSE(box("Tensor Operations", "NCCL").available);
  CHECK_THAT(box("Tensor Operations", "NCCL").detail, Catch::Contains("this version has no NCCL backend"));
}
