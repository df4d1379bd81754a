// The checker of job scripts with arbitrary text. Every finding belongs to a rule and a line of the script; findings
// are in the order of their lines.
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "fuzz/require.h"
#include "templates/lint/lint.h"
#include "templates/profile/site_catalog.h"

namespace {

/// A shipped profile with all fields that a rule checks.
ddl::templates::SiteProfile make_site() {
  const ddl::templates::SiteCatalog catalog({}, [](const std::string&) -> ddl::Result<std::string> {
    return ddl::fail(ddl::ErrorCode::kNotFound, "no file");
  });
  auto site = catalog.find("lumi-g");
  require(site.has_value());
  site->slurm.mpi_types = {"cray_shasta", "pmi2"};
  site->slurm.gpu_bind_closest = false;
  site->slurm.task_request = ddl::templates::TaskRequest::kTotal;
  site->slurm.account_suffix = "_g";
  site->slurm.srun_only = {"--hint"};
  site->setup.needed = {{{"NAME", "1"}}, "NCCL", "why"};
  return *std::move(site);
}

void check(std::string_view text, const ddl::templates::SiteProfile* site) {
  const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
  const auto rules = ddl::templates::lint_rules();
  int last = 0;
  for (const auto& finding : ddl::templates::lint_script(text, site)) {
    require(finding.line >= last && finding.line <= lines);
    last = finding.line;
    require(!finding.sentence.empty() && std::any_of(rules.begin(), rules.end(), [&](const auto& rule) {
      return rule.name == finding.rule && rule.severity == finding.severity;
    }));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ddl::templates::SiteProfile kSite = make_site();
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text, nullptr);
  check(text, &kSite);
  return 0;
}
